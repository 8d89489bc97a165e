// exec:
// Job control: reads and writes of a terminal in the background, its settings, orphaned groups and the ends of sessions.
#include "io_cases.h"
#include <sys/wait.h>
#include <termios.h>

static volatile sig_atomic_t caught;

static void catch_signal(int signal) { caught = signal; }

static void act(int signal, void (*handler)(int), int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(signal, &action, NULL);
}

static void report(const char *who, pid_t child) {
  int status = 0;
  if (waitpid(child, &status, WUNTRACED) != child)
    printf("%s: %s\n", who, error_name(errno));
  else if (WIFSTOPPED(status))
    printf("%s stops: %d\n", who, WSTOPSIG(status));
  else if (WIFSIGNALED(status))
    printf("%s is killed: %d\n", who, WTERMSIG(status));
  else
    printf("%s exits: %d\n", who, WEXITSTATUS(status));
  fflush(stdout);
}

// A child in a group of its own, which starts when the parent lets it.
static pid_t job(int line, int (*work)(int)) {
  int ready[2];
  pipe(ready);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    read(ready[0], &byte, 1);
    act(SIGTTOU, SIG_DFL, 0);
    _exit(work(line));
  }
  setpgid(child, child);
  write(ready[1], "", 1);
  close(ready[0]);
  close(ready[1]);
  return child;
}

static int result_of(long result) { return result < 0 ? errno : 100 + (int)result; }

static int reads(int line) {
  char text[8];
  return result_of(read(line, text, sizeof text));
}

static int reads_with_handler(int line) {
  act(SIGTTIN, catch_signal, 0);
  int result = reads(line);
  return caught == SIGTTIN ? result : 1;
}

static int reads_ignoring(int line) {
  act(SIGTTIN, SIG_IGN, 0);
  return reads(line);
}

static int reads_blocking(int line) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTTIN);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return reads(line);
}

static int writes(int line) { return result_of(write(line, "out\n", 4)); }

static int writes_ignoring(int line) {
  act(SIGTTOU, SIG_IGN, 0);
  return writes(line);
}

static int sets(int line) {
  struct termios settings;
  if (tcgetattr(line, &settings) < 0)
    return 1;
  return result_of(tcsetattr(line, TCSANOW, &settings));
}

static int takes_the_foreground(int line) { return result_of(tcsetpgrp(line, getpgrp())); }

static int flushes(int line) { return result_of(tcflush(line, TCIFLUSH)); }

// A job that is stopped, then put into the foreground and continued.
static void in_the_foreground(const char *who, int master, int line, int (*work)(int)) {
  pid_t child = job(line, work);
  report(who, child);
  SHOW(tcsetpgrp(line, child));
  if (work == reads)
    write(master, "typed\n", 6);
  kill(-child, SIGCONT);
  report(who, child);
  SHOW(tcsetpgrp(line, getpgrp()));
}

static void stop_output(int line, int stops) {
  struct termios settings;
  tcgetattr(line, &settings);
  settings.c_lflag = stops ? settings.c_lflag | TOSTOP : settings.c_lflag & ~TOSTOP;
  tcsetattr(line, TCSANOW, &settings);
}

// Whoever has an end of it is still there: reading it waits for all of them.
static int present[2];

static void begin_presence(void) { pipe(present); }

static void wait_for_the_end(void) {
  char byte;
  close(present[1]);
  while (read(present[0], &byte, 1) > 0)
    continue;
  close(present[0]);
}

// A process whose parent ends while it is stopped.
static int leaves_a_stopped_child(int line) {
  pid_t child = fork();
  if (child == 0) {
    setpgid(0, 0);
    act(SIGHUP, catch_signal, 0);
    raise(SIGSTOP);
    write(line, caught == SIGHUP ? "told\n" : "not told\n", caught == SIGHUP ? 5 : 9);
    _exit(0);
  }
  int status;
  waitpid(child, &status, WUNTRACED);
  return WIFSTOPPED(status) ? 7 : 8;
}

// An orphaned group in the background cannot be stopped.
static int leaves_a_reader(int line) {
  pid_t own = getpid();
  if (fork() == 0) {
    setpgid(0, 0);
    while (getppid() == own)
      usleep(1000);
    dprintf(line, "orphan: %d\n", reads(line));
    _exit(0);
  }
  return 9;
}

// Shows what comes until nothing is expected any more.
static void show_output(int master, const char *last) {
  char text[256] = "";
  struct pollfd wait = {master, POLLIN, 0};
  size_t len = 0;
  while (poll(&wait, 1, strstr(text, last) ? 200 : -1) == 1 && wait.revents & POLLIN) {
    long got = read(master, text + len, sizeof text - 1 - len);
    if (got <= 0)
      break;
    len += got;
    text[len] = 0;
  }
  for (char *at = text; *at; at++)
    putchar(*at == '\r' ? '$' : *at);
}

static int session(int master, const char *name) {
  setsid();
  int line = open(name, O_RDWR);
  SHOW(tcgetpgrp(line) == getpgrp());
  act(SIGTTOU, SIG_IGN, 0);
  in_the_foreground("reader", master, line, reads);
  report("reader with a handler", job(line, reads_with_handler));
  report("reader that ignores", job(line, reads_ignoring));
  report("reader that blocks", job(line, reads_blocking));
  report("writer", job(line, writes));
  stop_output(line, 1);
  pid_t child = job(line, writes);
  report("stopped writer", child);
  kill(child, SIGKILL);
  report("stopped writer", child);
  report("writer that ignores", job(line, writes_ignoring));
  stop_output(line, 0);
  in_the_foreground("settings", master, line, sets);
  in_the_foreground("foreground", master, line, takes_the_foreground);
  in_the_foreground("flush", master, line, flushes);
  begin_presence();
  report("parent of a stopped child", job(line, leaves_a_stopped_child));
  wait_for_the_end();
  begin_presence();
  report("parent of a reader", job(line, leaves_a_reader));
  wait_for_the_end();
  child = job(line, reads);
  report("last reader", child);
  // The leader itself is in an orphaned group: in the background it is refused, not stopped.
  SHOW(tcsetpgrp(line, child));
  act(SIGTTOU, SIG_DFL, 0);
  SHOW(tcflush(line, TCIFLUSH));
  SHOW(tcsetpgrp(line, getpgrp()));
  act(SIGTTOU, SIG_IGN, 0);
  SHOW(tcsetpgrp(line, getpgrp()));
  kill(child, SIGKILL);
  report("last reader", child);
  fflush(stdout);
  // The leader ends: the group in the foreground is told, also if it is another one.
  int ready[2];
  char byte;
  pipe(ready);
  child = fork();
  if (child == 0) {
    act(SIGHUP, catch_signal, 0);
    setpgid(0, 0);
    write(ready[1], "r", 1);
    while (caught == 0)
      usleep(1000);
    write(line, "no session\n", 11);
    _exit(0);
  }
  setpgid(child, child);
  tcsetpgrp(line, child);
  read(ready[0], &byte, 1);
  return 5;
}

static void hang_up(int master, const char *name) {
  fflush(stdout);
  pid_t leader = fork();
  if (leader == 0) {
    int held = master, gate[2];
    pipe(gate);
    setsid();
    int line = open(name, O_RDWR);
    act(SIGHUP, catch_signal, 0);
    act(SIGTTOU, SIG_IGN, 0);
    pid_t child = fork();
    if (child == 0) {
      act(SIGHUP, SIG_DFL, 0);
      close(held);
      char byte;
      read(gate[0], &byte, 1);
      _exit(result_of(read(line, &byte, 1)));
    }
    setpgid(child, child);
    tcsetpgrp(line, child);
    close(held);
    while (caught == 0)
      usleep(1000);
    SHOW(caught == SIGHUP);
    SHOW(tcgetpgrp(line));
    SHOW(open("/dev/tty", O_RDWR));
    write(gate[1], "g", 1);
    report("group without a terminal", child);
    fflush(stdout);
    _exit(6);
  }
  close(master);
  report("leader", leader);
}

int main(void) {
  // Whoever starts this in the background may have told it to ignore some.
  act(SIGHUP, SIG_DFL, 0);
  for (int round = 0; round < 2; round++) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    char name[64];
    grantpt(master);
    unlockpt(master);
    strcpy(name, ptsname(master));
    if (round == 1) {
      hang_up(master, name);
      break;
    }
    fflush(stdout);
    pid_t leader = fork();
    if (leader == 0) {
      int status = session(master, name);
      fflush(stdout);
      _exit(status);
    }
    report("leader", leader);
    show_output(master, "no session\r\n");
    close(master);
  }
  return 0;
}

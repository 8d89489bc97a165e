// exec:
#include "asleep.h"
#include "io_cases.h"

static volatile int handled;
static void handler(int signal) { handled += signal; }

static void look(const char *what, struct pollfd *entries, int count, int timeout) {
  errno = 0;
  int got = poll(entries, count, timeout);
  printf("%s: %d%s%s", what, got, got < 0 ? " " : "", got < 0 ? error_name(errno) : "");
  for (int i = 0; i < count; i++)
    printf(" %#x", entries[i].revents);
  printf("\n");
}

static int ends[2];
static void *write_later(void *unused) {
  sleep_ms(10);
  write(ends[1], "x", 1);
  return unused;
}

int main(void) {
  int p[2], null = open("/dev/null", O_RDWR);
  pipe(p);
  pipe(ends);
  struct pollfd entries[4] = {{p[0], POLLIN, 7}, {p[1], POLLOUT, 7}, {-1, POLLIN, 7}, {999, POLLIN, 7}};
  look("pipe, nothing, bad", entries, 4, 0);
  look("without the bad one", entries, 3, -1);
  look("empty", entries, 1, 0);
  look("empty for 5 ms", entries, 1, 5);
  look("no entries", entries, 0, 5);
  look("too many", NULL, 0, 0);
  SHOW(poll(entries, (nfds_t)1 << 31, 0));
  write(p[1], "abc", 3);
  look("full", entries, 2, -1);
  entries[0].events = 0;
  look("nothing asked", entries, 1, 0);
  entries[0].events = POLLOUT;
  look("wrong end", entries, 1, 0);
  entries[0].events = POLLIN | POLLPRI | POLLRDNORM | POLLRDHUP;
  look("all", entries, 1, 0);
  close(p[1]);
  entries[1].fd = -1;
  look("hang-up with data", entries, 1, 0);
  char buffer[8];
  read(p[0], buffer, 8);
  look("hang-up", entries, 1, -1);
  struct pollfd twice[2] = {{p[0], POLLIN, 0}, {p[0], 0, 0}};
  look("same one twice", twice, 2, -1);
  struct pollfd file = {null, POLLIN | POLLOUT, 0};
  look("/dev/null", &file, 1, -1);
  int regular = open("/tmp/everett-poll", O_RDWR | O_CREAT | O_TRUNC, 0600);
  unlink("/tmp/everett-poll");
  file.fd = regular;
  look("file", &file, 1, -1);

  struct pollfd later = {ends[0], POLLIN, 0};
  pthread_t thread;
  pthread_create(&thread, NULL, write_later, NULL);
  look("later", &later, 1, -1);
  pthread_join(thread, NULL);
  pthread_create(&thread, NULL, write_later, NULL);
  look("there already", &later, 1, -1);
  pthread_join(thread, NULL);
  read(ends[0], buffer, 8);

  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  pid_t self = getpid(), child = fork_flushed();
  if (!child) {
    until_asleep(self);
    kill(self, SIGUSR1);
    end_child(0);
  }
  look("signal", &later, 1, -1);
  SHOW(handled);
  wait_for(child);

  sigset_t mask, old, pending;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  sigprocmask(SIG_BLOCK, &mask, &old);
  raise(SIGUSR1);
  struct timespec zero = {0, 0}, some = {0, 2000000}, bad = {0, 1000000000};
  SHOW(ppoll(&later, 1, &zero, &old));
  SHOW(handled);
  raise(SIGUSR1);
  SHOW(ppoll(&later, 1, &some, &mask));
  SHOW(handled);
  SHOW(ppoll(&later, 1, NULL, &old));
  SHOW(handled);
  sigpending(&pending);
  SHOW(sigismember(&pending, SIGUSR1));
  raise(SIGUSR1);
  write(ends[1], "y", 1);
  SHOW(ppoll(&later, 1, NULL, &old));
  SHOW(handled);
  sigprocmask(SIG_SETMASK, &old, NULL);
  SHOW(handled);
  SHOW(ppoll(&later, 1, &bad, NULL));
  struct pollfd path = {open("/tmp", O_PATH), POLLIN | POLLOUT, 0};
  SHOW(poll(&path, 1, 0));
  SHOW(path.revents);
  SHOW(syscall(SYS_ppoll, &later, 1, NULL, &old, 4));
  return 0;
}

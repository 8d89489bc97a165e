// exec:
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int order[16], count;
static siginfo_t last;
static sigset_t inside;

static void note(int signal) {
  order[count++] = signal;
  sigprocmask(SIG_BLOCK, 0, &inside);
}

static void info(int signal, siginfo_t *si, void *context) {
  order[count++] = signal;
  last = *si;
  (void)context;
}

static void show(const char *what) {
  printf("%s:", what);
  for (int i = 0; i < count; i++)
    printf(" %d", order[i]);
  puts("");
  count = 0;
}

static void set(int signal, void (*handler)(int), int flags, int also) {
  struct sigaction action = {0};
  action.sa_handler = handler;
  action.sa_flags = flags;
  if (also)
    sigaddset(&action.sa_mask, also);
  sigaction(signal, &action, 0);
}

static void set_info(int signal, int flags) {
  struct sigaction action = {0};
  action.sa_sigaction = info;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(signal, &action, 0);
}

static int depth, deepest;
static void nested(int signal) {
  depth++;
  if (depth > deepest)
    deepest = depth;
  if (depth < 3)
    raise(signal);
  depth--;
}

static jmp_buf plain;
static sigjmp_buf with_mask;
static void jumps(int signal) { siglongjmp(with_mask, signal); }
static void jumps_plain(int signal) { longjmp(plain, signal); }

static int blocked(int signal) {
  sigset_t now;
  sigprocmask(SIG_BLOCK, 0, &now);
  return sigismember(&now, signal);
}

int main(void) {
  set(SIGUSR1, note, 0, SIGUSR2);
  raise(SIGUSR1);
  show("one");
  printf("inside %d %d %d, after %d\n", sigismember(&inside, SIGUSR1), sigismember(&inside, SIGUSR2),
         sigismember(&inside, SIGHUP), blocked(SIGUSR1));

  // Several at once: the last one that is set up runs first.
  set(SIGUSR1, note, 0, 0);
  set(SIGUSR2, note, 0, 0);
  set(SIGHUP, note, 0, 0);
  sigset_t all, old, pending;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &old);
  raise(SIGUSR2);
  raise(SIGHUP);
  raise(SIGUSR1);
  raise(SIGUSR1);
  sigpending(&pending);
  printf("pending %d %d %d %d\n", sigismember(&pending, SIGUSR1), sigismember(&pending, SIGUSR2),
         sigismember(&pending, SIGHUP), sigismember(&pending, SIGTERM));
  sigprocmask(SIG_SETMASK, &old, 0);
  show("several");

  set(SIGUSR1, nested, SA_NODEFER, 0);
  raise(SIGUSR1);
  printf("nodefer %d\n", deepest);
  deepest = 0;
  set(SIGUSR1, nested, 0, 0);
  depth = 2;
  raise(SIGUSR1);
  printf("deferred %d\n", deepest);

  set(SIGUSR1, note, SA_RESETHAND, 0);
  raise(SIGUSR1);
  struct sigaction now;
  sigaction(SIGUSR1, 0, &now);
  show("reset");
  printf("default again %d\n", now.sa_handler == SIG_DFL);

  set_info(SIGUSR1, 0);
  raise(SIGUSR1);
  show("raise");
  printf("code %d own %d\n", last.si_code == SI_TKILL, last.si_pid == getpid());
  kill(getpid(), SIGUSR1);
  show("kill");
  printf("code %d own %d uid %d\n", last.si_code == SI_USER, last.si_pid == getpid(),
         last.si_uid == getuid());
  union sigval value = {.sival_int = 4711};
  printf("sigqueue %d\n", sigqueue(getpid(), SIGUSR1, value));
  show("queue");
  printf("code %d value %d own %d\n", last.si_code == SI_QUEUE, last.si_value.sival_int,
         last.si_pid == getpid());

  int jumped = sigsetjmp(with_mask, 1);
  if (!jumped) {
    set(SIGUSR1, jumps, 0, SIGUSR2);
    raise(SIGUSR1);
    puts("not reached");
  }
  printf("siglongjmp %d blocked %d %d\n", jumped, blocked(SIGUSR1), blocked(SIGUSR2));
  jumped = setjmp(plain);
  if (!jumped) {
    set(SIGUSR1, jumps_plain, 0, 0);
    raise(SIGUSR1);
    puts("not reached");
  }
  printf("longjmp %d blocked %d\n", jumped, blocked(SIGUSR1));
  sigprocmask(SIG_SETMASK, &old, 0);
  jumped = sigsetjmp(with_mask, 0);
  if (!jumped) {
    set(SIGUSR1, jumps, 0, 0);
    raise(SIGUSR1);
  }
  printf("without mask %d blocked %d\n", jumped, blocked(SIGUSR1));
  sigprocmask(SIG_SETMASK, &old, 0);
  for (volatile int round = 0; round < 1000; round++)
    if (!sigsetjmp(with_mask, 1))
      raise(SIGUSR1);
  puts("often");

  // Ignored, also while blocked.
  signal(SIGUSR1, SIG_IGN);
  raise(SIGUSR1);
  sigprocmask(SIG_BLOCK, &all, 0);
  raise(SIGUSR1);
  sigpending(&pending);
  printf("ignored and blocked %d\n", sigismember(&pending, SIGUSR1));
  signal(SIGUSR1, note);
  sigpending(&pending);
  printf("with a handler %d\n", sigismember(&pending, SIGUSR1));
  raise(SIGUSR1);
  signal(SIGUSR1, SIG_IGN);
  sigpending(&pending);
  printf("ignored again %d\n", sigismember(&pending, SIGUSR1));
  sigprocmask(SIG_SETMASK, &old, 0);
  show("none");

  struct sigaction action = {0};
  action.sa_handler = note;
  printf("SIGKILL %d", sigaction(SIGKILL, &action, 0));
  printf(" %s\n", strerror(errno));
  printf("SIGSTOP %d", sigaction(SIGSTOP, &action, 0));
  printf(" %s\n", strerror(errno));
  printf("65 %d", sigaction(65, &action, 0));
  printf(" %s\n", strerror(errno));
  printf("0 %d", sigaction(0, &action, 0));
  printf(" %s\n", strerror(errno));
  printf("kill -1 signal %d", kill(getpid(), -1));
  printf(" %s\n", strerror(errno));
  printf("kill 0 %d\n", kill(getpid(), 0));
  printf("sigprocmask %d", sigprocmask(77, &all, 0));
  printf(" %s\n", strerror(errno));
  sigset_t kills;
  sigemptyset(&kills);
  sigaddset(&kills, SIGKILL);
  sigaddset(&kills, SIGSTOP);
  sigprocmask(SIG_BLOCK, &kills, 0);
  printf("blocked %d %d\n", blocked(SIGKILL), blocked(SIGSTOP));
  pid_t child = fork();
  if (!child)
    _exit(0);
  waitpid(child, 0, 0);
  printf("gone %d", kill(child, 0));
  printf(" %s\n", strerror(errno));
  return 0;
}

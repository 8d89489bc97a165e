// exec:
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int seen[64][2], count;

static void note(int signal, siginfo_t *si, void *context) {
  seen[count][0] = signal - SIGRTMIN;
  seen[count++][1] = si->si_value.sival_int;
  (void)context;
}

static void show(const char *what) {
  printf("%s:", what);
  for (int i = 0; i < count; i++)
    printf(" %d=%d", seen[i][0], seen[i][1]);
  puts("");
  count = 0;
}

static void queue(int signal, int number) {
  union sigval value = {.sival_int = number};
  sigqueue(getpid(), signal, value);
}

int main(void) {
  sigset_t all, old, some;
  sigfillset(&all);
  struct sigaction action = {0};
  action.sa_sigaction = note;
  action.sa_flags = SA_SIGINFO;
  sigfillset(&action.sa_mask);
  for (int i = 0; i < 4; i++)
    sigaction(SIGRTMIN + i, &action, 0);
  sigprocmask(SIG_BLOCK, &all, &old);
  for (int i = 0; i < 3; i++) {
    queue(SIGRTMIN + 2, i);
    queue(SIGRTMIN, 10 + i);
    queue(SIGRTMIN + 1, 20 + i);
  }
  show("blocked");
  sigprocmask(SIG_SETMASK, &old, 0);
  show("in order");

  // Waiting for them.
  sigprocmask(SIG_BLOCK, &all, 0);
  queue(SIGRTMIN + 1, 1);
  queue(SIGRTMIN + 1, 2);
  queue(SIGRTMIN, 3);
  raise(SIGUSR1);
  sigemptyset(&some);
  sigaddset(&some, SIGRTMIN);
  sigaddset(&some, SIGRTMIN + 1);
  siginfo_t si;
  struct timespec none = {0, 0}, little = {0, 1000000};
  for (int i = 0; i < 4; i++) {
    int got = sigtimedwait(&some, &si, &none);
    if (got < 0)
      printf("%d %s\n", got, strerror(errno));
    else
      printf("%d value %d code %d\n", got - SIGRTMIN, si.si_value.sival_int, si.si_code == SI_QUEUE);
  }
  printf("timed %d", sigtimedwait(&some, 0, &little));
  printf(" %s\n", strerror(errno));
  struct timespec bad = {0, 1000000000};
  printf("bad %d", sigtimedwait(&some, 0, &bad));
  printf(" %s\n", strerror(errno));
  sigset_t users;
  sigemptyset(&users);
  sigaddset(&users, SIGUSR1);
  int which = 0;
  printf("sigwait %d", sigwait(&users, &which));
  printf(" %d\n", which == SIGUSR1);

  // From a child.
  pid_t parent = getpid(), child = fork();
  if (!child) {
    union sigval value = {.sival_int = 99};
    for (int i = 0; i < 3; i++) {
      value.sival_int++;
      if (sigqueue(parent, SIGRTMIN, value))
        _exit(1);
    }
    _exit(7);
  }
  for (int i = 0; i < 3; i++) {
    int got = sigwaitinfo(&some, &si);
    printf("%d value %d child %d\n", got - SIGRTMIN, si.si_value.sival_int, si.si_pid == child);
  }
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  int got = sigwaitinfo(&children, &si);
  printf("%d code %d status %d child %d uid %d\n", got == SIGCHLD, si.si_code == CLD_EXITED, si.si_status,
         si.si_pid == child, si.si_uid == getuid());
  int status;
  waitpid(child, &status, 0);
  printf("exit %d\n", WEXITSTATUS(status));

  // A wait that another signal ends.
  struct sigaction other = {0};
  other.sa_sigaction = note;
  other.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGALRM, &other, 0);
  sigset_t but = all;
  sigdelset(&but, SIGALRM);
  sigprocmask(SIG_SETMASK, &but, 0);
  // Again and again, as the first one may come before the wait.
  struct itimerval often = {{1, 0}, {1, 0}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, 0);
  got = syscall(SYS_rt_sigtimedwait, &some, &si, 0, 8);
  setitimer(ITIMER_REAL, &never, 0);
  printf("interrupted %d %s, handlers %d\n", got, strerror(errno), count > 0);
  count = 0;

  // sigsuspend lets through what it is told, and restores the rest.
  sigprocmask(SIG_SETMASK, &all, 0);
  queue(SIGRTMIN + 3, 5);
  sigset_t let = all;
  sigdelset(&let, SIGRTMIN + 3);
  int suspended = sigsuspend(&let);
  printf("sigsuspend %d %s\n", suspended, strerror(errno));
  show("through");
  sigprocmask(SIG_BLOCK, 0, &some);
  printf("blocked again %d\n", sigismember(&some, SIGRTMIN + 3));
  printf("sigqueue 99 %d", sigqueue(getpid(), 99, (union sigval){0}));
  printf(" %s\n", strerror(errno));
  return 0;
}

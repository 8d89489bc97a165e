// exec:
// RLIMIT_SIGPENDING: queued signals of the user. Signals that need no entry are sent without their information.
#include "files.h"
#include <sys/resource.h>

static void limit(rlim_t most) {
  struct rlimit to = {most, most};
  TRY(setrlimit(RLIMIT_SIGPENDING, &to));
}

static int queue(int signal, int value) {
  return sigqueue(getpid(), signal, (union sigval){.sival_int = value});
}

static void take(sigset_t *all) {
  siginfo_t info;
  struct timespec none = {0, 0};
  int number;
  while ((number = sigtimedwait(all, &info, &none)) > 0)
    printf("signal %d code %d value %d pid %d\n", number < 32 ? number : number - SIGRTMIN + 100, info.si_code,
           info.si_code == SI_QUEUE ? info.si_value.sival_int : 0, info.si_pid == getpid());
  fflush(stdout);
}

int main(void) {
  sigset_t all;
  sigemptyset(&all);
  int numbers[] = {SIGUSR1, SIGUSR2, SIGHUP, SIGRTMIN, SIGRTMIN + 1};
  for (int i = 0; i < 5; i++) sigaddset(&all, numbers[i]);
  sigprocmask(SIG_BLOCK, &all, NULL);
  // A user whom nobody else is.
  TRY(setgid(54321));
  TRY(setuid(54321));
  limit(3);
  TRY(queue(SIGRTMIN, 1));
  TRY(queue(SIGRTMIN, 2));
  TRY(queue(SIGRTMIN + 1, 3));
  TRY(queue(SIGRTMIN, 4));
  // Without an entry: what they carry is lost.
  TRY(queue(SIGUSR1, 5));
  TRY(kill(getpid(), SIGUSR2));
  TRY(kill(getpid(), SIGRTMIN + 1));
  TRY(raise(SIGHUP));
  timer_t timer;
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  TRY(timer_create(CLOCK_MONOTONIC, &event, &timer));
  take(&all);
  // A timer has an entry of its own.
  TRY(timer_create(CLOCK_MONOTONIC, &event, &timer));
  TRY(queue(SIGRTMIN, 6));
  TRY(queue(SIGRTMIN, 7));
  TRY(queue(SIGRTMIN, 8));
  TRY(timer_delete(timer));
  TRY(queue(SIGRTMIN, 9));
  take(&all);
  limit(0);
  TRY(queue(SIGRTMIN, 10));
  TRY(queue(SIGUSR1, 11));
  take(&all);
  char line[256];
  FILE *file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file))
    if (!strncmp(line, "SigQ:", 5)) printf("%s", line);
  return 0;
}

// exec:
// Overruns of a timer are known once its signal is unblocked, also if that signal is ignored by default.
#include <signal.h>
#include <stdio.h>
#include <time.h>

int main(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCONT);
  sigprocmask(SIG_SETMASK, &set, 0);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGCONT};
  timer_t timer;
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
    return 1;
  struct itimerspec time = {.it_value.tv_nsec = 2000000, .it_interval.tv_nsec = 100000};
  timer_settime(timer, 0, &time, 0);
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, 0);
  printf("pending: %d overruns\n", timer_getoverrun(timer));
  sigprocmask(SIG_UNBLOCK, &set, 0);
  printf("unblocked: many overruns: %d\n", timer_getoverrun(timer) > 100);
  return 0;
}

// exec:
// Overruns of timers, and loops that wait for the time to pass.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t hits;

static void handler(int number) {
  (void)number;
  hits++;
}

static void nap(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&time, &time) != 0 && errno == EINTR) {
  }
}

static void poll_clock(clockid_t clock) {
  struct timespec now, end;
  clock_gettime(clock, &end);
  end.tv_sec += 1;
  do
    clock_gettime(clock, &now);
  while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
  puts("a second has passed");
}

int main(void) {
  signal(SIGUSR1, handler);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  timer_t timer;
  timer_create(CLOCK_REALTIME, &event, &timer);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  struct itimerspec periodic = {{0, 100000000}, {0, 100000000}};
  timer_settime(timer, 0, &periodic, NULL);
  nap(550);
  sigprocmask(SIG_UNBLOCK, &blocked, NULL);
  printf("hits %d, overrun %d\n", hits, timer_getoverrun(timer));
  timer_delete(timer);
  poll_clock(CLOCK_MONOTONIC);
  poll_clock(CLOCK_PROCESS_CPUTIME_ID);
  return 0;
}

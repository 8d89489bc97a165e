// exec:
// Overruns of timers, and loops that wait for the time to pass.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t hits, overrun, told;
static timer_t timer;

// More may follow before the program goes on: only the first one counts all of the nap.
static void handler(int number, siginfo_t *info, void *context) {
  (void)number, (void)context;
  if (hits++ > 0)
    return;
  overrun = timer_getoverrun(timer);
  told = info->si_overrun;
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
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  sigaction(SIGUSR1, &action, NULL);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  timer_create(CLOCK_REALTIME, &event, &timer);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  struct itimerspec periodic = {{0, 100000000}, {0, 100000000}};
  timer_settime(timer, 0, &periodic, NULL);
  nap(550);
  sigprocmask(SIG_UNBLOCK, &blocked, NULL);
  printf("hit %d, overruns %d, told so %d\n", hits > 0, overrun >= 4, told == overrun);
  timer_delete(timer);
  poll_clock(CLOCK_MONOTONIC);
  poll_clock(CLOCK_PROCESS_CPUTIME_ID);
  return 0;
}

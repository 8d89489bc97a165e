// run:
// paths: 1
// Cancelled timerfds tell the change of the clock, then what has expired; a timer that is set anew or deleted takes
// back its signal. It is not run on the machine: it would set its clock, and kernels before 6.13 keep the signal.
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static void jump(int seconds) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += seconds;
  assert(clock_settime(CLOCK_REALTIME, &now) == 0);
}

static int readable(int fd) {
  struct pollfd waits = {fd, POLLIN, 0};
  return poll(&waits, 1, 0) == 1 && waits.revents == POLLIN;
}

int main(void) {
  int fd = timerfd_create(CLOCK_REALTIME, 0);
  struct itimerspec at = {0};
  uint64_t count;
  clock_gettime(CLOCK_REALTIME, &at.it_value);
  at.it_value.tv_sec += 3;
  assert(timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL) == 0);
  // Beyond the timer: it is cancelled, and has expired.
  jump(5);
  assert(readable(fd));
  assert(read(fd, &count, 8) == -1 && errno == ECANCELED);
  assert(read(fd, &count, 8) == 8 && count == 1);
  // Before the timer: it is cancelled only.
  at.it_value.tv_sec += 100;
  assert(timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &at, NULL) == 0);
  jump(1);
  assert(readable(fd));
  assert(read(fd, &count, 8) == -1 && errno == ECANCELED);
  assert(!readable(fd));

  timer_t timer;
  sigset_t mask, pending;
  struct timespec none = {0, 0};
  struct itimerspec soon = {.it_value = {0, 1000000}}, late = {.it_value = {100, 0}};
  sigemptyset(&mask);
  sigaddset(&mask, SIGALRM);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  assert(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0);
  assert(timer_settime(timer, 0, &soon, NULL) == 0);
  usleep(5000);
  sigpending(&pending);
  assert(sigismember(&pending, SIGALRM));
  assert(timer_settime(timer, 0, &late, NULL) == 0);
  assert(sigtimedwait(&mask, NULL, &none) == -1 && errno == EAGAIN);
  assert(timer_settime(timer, 0, &soon, NULL) == 0);
  usleep(5000);
  assert(timer_delete(timer) == 0);
  assert(sigtimedwait(&mask, NULL, &none) == -1 && errno == EAGAIN);
  return 0;
}

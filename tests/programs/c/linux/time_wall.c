// run:
// paths: 1
// Deadlines on the wall clock when that is set. It is not run on the machine, whose clock it would set; what is
// asserted is what Linux does.
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t hits;

static void handler(int number) {
  (void)number;
  hits++;
}

static struct timespec in(int seconds) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += seconds;
  return now;
}

static void *sleeper(void *unused) {
  struct timespec until = in(100), before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  int result = clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL);
  clock_gettime(CLOCK_MONOTONIC, &after);
  assert(result == 0 && after.tv_sec - before.tv_sec < 60);
  return unused;
}

static void jump(int seconds) {
  struct timespec to = in(seconds);
  assert(clock_settime(CLOCK_REALTIME, &to) == 0);
}

static void nap(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&time, &time) != 0 && errno == EINTR) {
  }
}

// A timer that wants to know is readable when the clock is set, and fails once.
static void canceled(void) {
  int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct itimerspec setting = {.it_value = {now.tv_sec + 600, 0}};
  uint64_t count;
  struct pollfd entry = {fd, POLLIN, 0};
  assert(timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &setting, NULL) == 0);
  assert(read(fd, &count, 8) < 0 && errno == EAGAIN);
  assert(clock_settime(CLOCK_REALTIME, &now) == 0);
  assert(poll(&entry, 1, 0) == 1);
  assert(read(fd, &count, 8) < 0 && errno == ECANCELED);
  assert(read(fd, &count, 8) < 0 && errno == EAGAIN);
  assert(clock_settime(CLOCK_REALTIME, &now) == 0);
  assert(timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &setting, NULL) < 0 && errno == ECANCELED);
  assert(timerfd_settime(fd, TFD_TIMER_ABSTIME, &setting, NULL) == 0);
  assert(clock_settime(CLOCK_REALTIME, &now) == 0);
  assert(poll(&entry, 1, 0) == 0);
  close(fd);
}

int main(void) {
  canceled();
  pthread_t thread;
  pthread_create(&thread, NULL, sleeper, NULL);
  nap(50);
  jump(200);
  pthread_join(thread, NULL);
  signal(SIGUSR1, handler);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  timer_t timer;
  timer_create(CLOCK_REALTIME, &event, &timer);
  struct itimerspec once = {{0, 0}, in(100)}, relative = {{0, 0}, {100, 0}};
  int absolute_fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
  int relative_fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
  timer_settime(timer, TIMER_ABSTIME, &once, NULL);
  timerfd_settime(absolute_fd, TFD_TIMER_ABSTIME, &once, NULL);
  timerfd_settime(relative_fd, 0, &relative, NULL);
  jump(200);
  nap(50);
  uint64_t count = 0;
  assert(hits == 1);
  assert(read(absolute_fd, &count, sizeof count) == sizeof count && count == 1);
  assert(read(relative_fd, &count, sizeof count) == -1);
  return 0;
}

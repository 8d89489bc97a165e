// exec:
// Deadlines on the wall clock when that is set, overruns, and loops that wait for the time to pass.
#include <errno.h>
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
  printf("slept %d, for less than a minute: %d\n", result, after.tv_sec - before.tv_sec < 60);
  return unused;
}

static void jump(int seconds) {
  struct timespec to = in(seconds);
  printf("set %d\n", clock_settime(CLOCK_REALTIME, &to));
}

static void nap(long ms) {
  struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&time, &time) != 0 && errno == EINTR) {
  }
}

int main(void) {
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
  printf("fired %d, %zd", hits, read(absolute_fd, &count, sizeof count));
  printf(", the relative one %zd\n", read(relative_fd, &count, sizeof count));
  jump(-400);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  struct itimerspec periodic = {{0, 100000000}, {0, 100000000}};
  timer_settime(timer, 0, &periodic, NULL);
  nap(550);
  sigprocmask(SIG_UNBLOCK, &blocked, NULL);
  printf("overrun %d\n", timer_getoverrun(timer));
  timer_delete(timer);
  time_t start = time(NULL);
  while (time(NULL) - start < 2) {
  }
  struct timespec now, end;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  end.tv_sec++;
  do
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  while (now.tv_sec < end.tv_sec || now.tv_nsec < end.tv_nsec);
  puts("waited");
  return 0;
}

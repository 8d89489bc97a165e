// exec:
// Clocks since boot are above 0 and agree with each other; absolute times are on them.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static struct timespec after(clockid_t clock, long ms) {
  struct timespec time;
  clock_gettime(clock, &time);
  time.tv_nsec += ms * 1000000;
  time.tv_sec += time.tv_nsec / 1000000000;
  time.tv_nsec %= 1000000000;
  return time;
}

int main(void) {
  struct sysinfo info;
  sysinfo(&info);
  double since = now(CLOCK_MONOTONIC), uptime = 0;
  FILE *file = fopen("/proc/uptime", "r");
  if (!file || fscanf(file, "%lf", &uptime) != 1) puts("no uptime");
  printf("above 1: %d, boot time %d, raw %d, sysinfo %d, /proc %d\n", since > 1, now(CLOCK_BOOTTIME) - since >= 0,
         now(CLOCK_MONOTONIC_RAW) > 1, (double)info.uptime > since - 600, uptime > since - 600);
  struct timespec at = after(CLOCK_MONOTONIC, 30);
  printf("sleep %d", clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL));
  double took = now(CLOCK_MONOTONIC) - since;
  printf(", long enough %d\n", took >= 0.03);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition;
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&condition, &attributes);
  pthread_mutex_lock(&mutex);
  since = now(CLOCK_MONOTONIC);
  at = after(CLOCK_MONOTONIC, 30);
  int result = pthread_cond_timedwait(&condition, &mutex, &at);
  took = now(CLOCK_MONOTONIC) - since;
  printf("condition %d, long enough %d\n", result == ETIMEDOUT, took >= 0.03);
  int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec setting = {.it_value = after(CLOCK_MONOTONIC, 3600000)};
  uint64_t count = 0;
  timerfd_settime(fd, TFD_TIMER_ABSTIME, &setting, NULL);
  struct pollfd entry = {fd, POLLIN, 0};
  printf("not yet %d, ", poll(&entry, 1, 0));
  setting.it_value = after(CLOCK_MONOTONIC, 30);
  timerfd_settime(fd, TFD_TIMER_ABSTIME, &setting, NULL);
  long got = read(fd, &count, 8);
  printf("read %ld, %d\n", got, (int)count);
  struct tms used;
  printf("ticks above 0: %d\n", times(&used) > 0);
}

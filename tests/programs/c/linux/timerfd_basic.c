// exec:
#include "io_cases.h"
#include <sys/timerfd.h>

static void take(int fd) {
  uint64_t count = 0;
  errno = 0;
  long got = read(fd, &count, 8);
  printf("read %ld %s count %llu\n", got, got < 0 ? error_name(errno) : "",
         (unsigned long long)count);
}

static void take_several(int fd, uint64_t least) {
  uint64_t count = 0;
  WELL(read(fd, &count, 8) == 8 && count >= least);
}

static int set(int fd, int flags, long first_ms, long interval_ms) {
  struct itimerspec setting = {{interval_ms / 1000, interval_ms % 1000 * 1000000},
                               {first_ms / 1000, first_ms % 1000 * 1000000}};
  return timerfd_settime(fd, flags, &setting, NULL);
}

static void setting(int fd) {
  struct itimerspec now;
  timerfd_gettime(fd, &now);
  printf("interval %ld ms, runs %d\n", (long)now.it_interval.tv_sec * 1000 + now.it_interval.tv_nsec / 1000000,
         now.it_value.tv_sec || now.it_value.tv_nsec);
}

int main(void) {
  int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  SHOW(fcntl(fd, F_GETFD));
  SHOW(fcntl(fd, F_GETFL) & O_NONBLOCK);
  SHOW(timerfd_create(99, 0));
  SHOW(timerfd_create(CLOCK_PROCESS_CPUTIME_ID, 0));
  SHOW(timerfd_create(CLOCK_REALTIME, 1));
  take(fd);
  setting(fd);
  EVENTS(fd);
  SHOW(set(fd, 0, 1000000, 0));
  setting(fd);
  take(fd);
  EVENTS(fd);
  SHOW(set(fd, 0, 10, 0));
  sleep_ms(20);
  EVENTS(fd);
  setting(fd);
  take(fd);
  take(fd);
  SHOW(set(fd, 0, 10, 20));
  setting(fd);
  sleep_ms(60);
  take_several(fd, 3);
  setting(fd);
  SHOW(set(fd, 0, 10, 1000000));
  sleep_ms(60);
  take(fd);
  take(fd);
  setting(fd);
  SHOW(set(fd, 0, 0, 20));
  setting(fd);
  sleep_ms(50);
  take(fd);
  SHOW(set(fd, 0, 5, 0));
  sleep_ms(10);
  SHOW(set(fd, 0, 1000000, 0));
  take(fd);

  struct itimerspec old = {{9, 9}, {9, 9}}, new = {{0, 0}, {1, 0}};
  SHOW(timerfd_settime(fd, 0, &new, &old));
  printf("old runs %d\n", old.it_value.tv_sec > 0);
  new.it_value.tv_nsec = 1000000000;
  SHOW(timerfd_settime(fd, 0, &new, NULL));
  new.it_value.tv_nsec = -1;
  SHOW(timerfd_settime(fd, 0, &new, NULL));
  new.it_value.tv_nsec = 0;
  SHOW(timerfd_settime(fd, 0x100, &new, NULL));
  SHOW(timerfd_settime(0, 0, &new, NULL) == -1);
  SHOW(timerfd_settime(999, 0, &new, NULL));
  SHOW(timerfd_gettime(999, &new));
  int p[2];
  pipe(p);
  SHOW(timerfd_gettime(p[0], &new));
  char small[4];
  SHOW(read(fd, small, 4));
  SHOW(write(fd, "12345678", 8));
  SHOW(lseek(fd, 0, SEEK_SET));

  // It blocks, and it can be waited for.
  int blocking = timerfd_create(CLOCK_REALTIME, 0);
  set(blocking, 0, 10, 0);
  take(blocking);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  struct itimerspec absolute = {{0, 0}, {now.tv_sec, now.tv_nsec}};
  SHOW(timerfd_settime(blocking, TFD_TIMER_ABSTIME, &absolute, NULL));
  take(blocking);
  clock_gettime(CLOCK_REALTIME, &now);
  absolute.it_value.tv_sec = now.tv_sec + 1 - (now.tv_nsec < 990000000);
  absolute.it_value.tv_nsec = now.tv_nsec < 990000000 ? now.tv_nsec + 9000000 : 0;
  SHOW(timerfd_settime(blocking, TFD_TIMER_ABSTIME, &absolute, NULL));
  take(blocking);
  struct timespec after;
  clock_gettime(CLOCK_REALTIME, &after);
  WELL(after.tv_sec > absolute.it_value.tv_sec || (after.tv_sec == absolute.it_value.tv_sec &&
                                                    after.tv_nsec >= absolute.it_value.tv_nsec));
  absolute.it_value.tv_sec = 1;
  SHOW(timerfd_settime(timerfd_create(CLOCK_BOOTTIME, 0), TFD_TIMER_ABSTIME, &absolute, NULL));

  int poller = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 5};
  epoll_ctl(poller, EPOLL_CTL_ADD, blocking, &event);
  set(blocking, 0, 10, 15);
  SHOW(epoll_wait(poller, &event, 1, -1));
  SHOW(epoll_wait(poller, &event, 1, 0));
  SHOW(epoll_wait(poller, &event, 1, 100));
  uint64_t several = 0;
  read(blocking, &several, 8);
  WELL(several >= 6);
  SHOW(epoll_wait(poller, &event, 1, 100));
  pid_t child = fork_flushed();
  if (!child) {
    uint64_t count = 0;
    WELL(read(blocking, &count, 8) == 8 && count > 0);
    end_child(0);
  }
  wait_for(child);
  set(blocking, 0, 0, 0);
  struct pollfd entry = {blocking, POLLIN, 0};
  SHOW(poll(&entry, 1, 20));
  return 0;
}

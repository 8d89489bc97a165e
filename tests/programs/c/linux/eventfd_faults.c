// run: --faults 1 --fault read,write
// paths: 2
// A counter that does not wait has no disk: it cannot fail. A timer that has not expired can be interrupted.
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

int main(void) {
  uint64_t value = 3;
  int quick = eventfd(0, EFD_NONBLOCK), slow = eventfd(0, 0);
  assert(write(quick, &value, 8) == 8 && read(quick, &value, 8) == 8 && value == 3);
  assert(write(slow, &value, 8) == 8 && read(slow, &value, 8) == 8);
  int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec soon = {.it_value.tv_nsec = 1000000};
  timerfd_settime(timer, 0, &soon, NULL);
  if (read(timer, &value, 8) < 0) assert(errno == EINTR);
  return 0;
}

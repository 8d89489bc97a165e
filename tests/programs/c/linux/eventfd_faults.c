// run: --faults 1 --fault read,write
// paths: 4
// A counter that does not block has no disk and nobody to wait for: it cannot fail. One that blocks can be interrupted.
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
  int interrupted = write(slow, &value, 8) < 0;
  assert(!interrupted || errno == EINTR);
  if (!interrupted && read(slow, &value, 8) < 0) {
    assert(errno == EINTR);
    interrupted = 1;
  }
  int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec soon = {.it_value.tv_nsec = 1000};
  timerfd_settime(timer, 0, &soon, NULL);
  if (read(timer, &value, 8) < 0) assert(errno == EINTR && !interrupted);
  return 0;
}

// run: --preempt syscalls
// paths: 12
// As with two threads in all orders, but at most one thread is stopped that could go on.
#define WORKERS 2
#include "schedules.h"

static void work(long number) {
  (void)number;
  syscall(SYS_getpid);
  syscall(SYS_getpid);
}

int main(void) {
  experiment(EVERETT_BOUNDED, 1);
  return 0;
}

// run: --preempt syscalls
// paths: 58
// As with two threads in all orders, but at most twice a thread is stopped that could go on.
#define WORKERS 2
#include "schedules.h"

static void work(long number) {
  (void)number;
  syscall(SYS_getpid);
  syscall(SYS_getpid);
}

int main(void) {
  experiment(EVERETT_BOUNDED, 2);
  return 0;
}

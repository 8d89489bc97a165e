// run: --preempt syscalls
// paths: 610
// Main makes one step and each thread four, the last of which is not made by the one that ends the experiment.
#define WORKERS 2
#include "schedules.h"

static void work(long number) {
  (void)number;
  syscall(SYS_getpid);
  syscall(SYS_getpid);
}

int main(void) {
  experiment(EVERETT_EXHAUSTIVE, 0);
  return 0;
}

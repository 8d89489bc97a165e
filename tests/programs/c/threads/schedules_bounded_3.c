// run: --preempt syscalls
// paths: 150
// Three threads, and at most twice one is stopped that could go on.
#define WORKERS 3
#include "schedules.h"

static void work(long number) {
  (void)number;
}

int main(void) {
  experiment(EVERETT_BOUNDED, 2);
  return 0;
}

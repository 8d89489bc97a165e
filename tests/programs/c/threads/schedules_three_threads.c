// run: --preempt syscalls
// paths: 546
// Main makes one step and each of three threads two.
#define WORKERS 3
#include "schedules.h"

static void work(long number) {
  (void)number;
}

int main(void) {
  experiment(EVERETT_EXHAUSTIVE, 0);
  return 0;
}

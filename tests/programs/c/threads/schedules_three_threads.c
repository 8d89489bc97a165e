// run: --preempt syscalls
// paths: 1
// Main makes one step, each thread four: all orders of 1 + 4 + 4 steps until the last thread ends the experiment.
#define WORKERS 3
#include "schedules.h"
static void work(long number) {
  (void)number;
}
int main(void) {
  experiment(EVERETT_EXHAUSTIVE, 0);
  return 0;
}

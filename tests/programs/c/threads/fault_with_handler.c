// run:
// finding: null-pointer 9
// paths: 2
#include "fault_escape.h"

// A fault is a finding although there is a handler, unless handlers are trusted.
int main(void) {
  volatile int *nowhere = block_or_null();
  if (!sigsetjmp(back, 1)) *nowhere = 1;
  return 0;
}

// run:
// finding: null-pointer 10
// survives: null-pointer the handler goes on natively
// paths: 2
#include "fault_escape.h"

// A fault is a finding although there is a handler, unless handlers are trusted.
int main(void) {
  volatile int *nowhere = block_or_null();
  if (!sigsetjmp(back, 1)) *nowhere = 1;
  return 0;
}

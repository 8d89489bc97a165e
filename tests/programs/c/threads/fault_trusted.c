// run: --trust-handlers
// paths: 2
#include "fault_escape.h"

// Handlers are trusted: no finding on either path.
int main(void) {
  volatile int *nowhere = block_or_null();
  if (!sigsetjmp(back, 1)) *nowhere = 1;
  else return 7;
  free((void *)nowhere);
  return 0;
}

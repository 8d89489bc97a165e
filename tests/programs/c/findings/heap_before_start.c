// run:
// finding: out-of-bounds 8
#include <stdlib.h>

int main(void) {
  volatile int minus = -1;
  char *block = malloc(8);
  block[minus] = 1; // here
  return 0;
}

// run:
// finding: out-of-bounds 8
#include <stdlib.h>

int main(void) {
  volatile int far = 1000;
  char *block = malloc(8);
  return block[far]; // here
}

// run:
// finding: out-of-bounds 9
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <stdlib.h>

int main(void) {
  volatile int far = 1000;
  char *block = malloc(8);
  return block[far]; // here
}

// run:
// finding: out-of-bounds 8
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <stdlib.h>

int main(void) {
  int *block = malloc(4 * sizeof *block);
  block[4] = 7; // here
  free(block);
  return 0;
}

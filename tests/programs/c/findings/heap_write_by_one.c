// run:
// finding: out-of-bounds 7
#include <stdlib.h>

int main(void) {
  int *block = malloc(4 * sizeof *block);
  block[4] = 7; // here
  free(block);
  return 0;
}

// run:
// finding: use-after-free 9
// not on -O3: use-after-free the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <stdlib.h>

int main(void) {
  int *block = malloc(sizeof *block);
  free(block);
  *block = 1; // here
  return 0;
}

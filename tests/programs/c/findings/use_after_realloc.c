// run:
// finding: use-after-free 10
// not on -O3: use-after-free the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <stdlib.h>

int main(void) {
  int *small = malloc(4);
  *small = 1;
  int *large = realloc(small, 4000);
  large[999] = *small; // here
  free(large);
  return 0;
}

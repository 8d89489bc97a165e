// run:
// finding: use-after-free 9
#include <stdlib.h>

int main(void) {
  int *small = malloc(4);
  *small = 1;
  int *large = realloc(small, 4000);
  large[999] = *small; // here
  free(large);
  return 0;
}

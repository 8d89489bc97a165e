// run:
// finding: use-after-free 8
#include <stdlib.h>

int main(void) {
  int *block = malloc(sizeof *block);
  free(block);
  *block = 1; // here
  return 0;
}

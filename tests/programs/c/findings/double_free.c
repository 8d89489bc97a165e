// run:
// finding: double-free 7
// not on -O3: double-free the optimiser leaves the allocation out
#include <stdlib.h>

static void drop(char *block) {
  free(block); // here
}

int main(void) {
  char *block = malloc(5);
  drop(block);
  drop(block);
  return 0;
}

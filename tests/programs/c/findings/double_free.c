// run:
// finding: double-free 6
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

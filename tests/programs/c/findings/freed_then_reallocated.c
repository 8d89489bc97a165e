// run:
// finding: use-after-free 10
#include <stdlib.h>

int main(void) {
  char *first = malloc(32);
  free(first);
  char *second = malloc(32);
  second[0] = 1;
  return first[0]; // here
}

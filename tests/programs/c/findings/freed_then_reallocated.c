// run:
// finding: use-after-free 11
// not on -O3: use-after-free the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <stdlib.h>

int main(void) {
  char *first = malloc(32);
  free(first);
  char *second = malloc(32);
  second[0] = 1;
  return first[0]; // here
}

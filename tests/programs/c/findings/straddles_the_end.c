// run:
// finding: out-of-bounds 12
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <stdlib.h>

// Only the last byte of the access lies outside.
int main(void) {
  char *block = malloc(7);
  for (int i = 0; i < 7; i++)
    block[i] = 0;
  int *number = (int *)(block + 4);
  return *number; // here
}

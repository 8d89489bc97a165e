// run:
// finding: out-of-bounds 11
#include <stdlib.h>

// Only the last byte of the access lies outside.
int main(void) {
  char *block = malloc(7);
  for (int i = 0; i < 7; i++)
    block[i] = 0;
  int *number = (int *)(block + 4);
  return *number; // here
}

// run:
// finding: out-of-bounds 11
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>
#include <stdlib.h>

// The block is one too small for the terminator.
int main(void) {
  unsigned length = everett_symbolic_u8("length");
  char *block = malloc(length);
  block[length] = 0; // here
  free(block);
  return 0;
}

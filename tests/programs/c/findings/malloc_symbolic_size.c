// run:
// finding: out-of-bounds 10
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

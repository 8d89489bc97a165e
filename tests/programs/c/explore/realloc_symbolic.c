// run:
// finding: out-of-bounds 15
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>
#include <stdlib.h>

int main(void) {
  unsigned size = everett_symbolic_u8("size");
  everett_assume(size >= 1 && size <= 16);
  char *block = malloc(4);
  block[3] = 9;
  block = realloc(block, size);
  if (size >= 4 && block[3] != 9)
    return 50;
  block[7] = 1; // here
  free(block);
  return 0;
}

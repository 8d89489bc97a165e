// run:
// finding: out-of-bounds 14
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>
#include <stdlib.h>

int main(void) {
  uint32_t count = everett_symbolic_u32("count");
  everett_assume(count >= 0x10000000 && count <= 0x10000004);
  uint32_t bytes = count * 16; // wraps around
  int *block = malloc(bytes);
  if (bytes > 0)
    return 0;
  block[0] = 1; // here
  return 0;
}

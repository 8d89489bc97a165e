// run:
// finding: huge-allocation 11
// not on -O3: huge-allocation the optimiser leaves the allocation out
#include <everett.h>
#include <stdlib.h>

int main(void) {
  unsigned length = everett_symbolic_u32("length");
  if (length < 0x20000000)
    return 0;
  char *block = malloc((size_t)length * 1024); // here
  if (!block)
    return 1;
  return 2;
}

// run: --check-leaks
// paths: 2
// finding: leak 10
// finding: leak 14
// not on -O3: leak the optimiser leaves the allocation out
#include <everett.h>
#include <stdlib.h>

static void lose_small(void) {
  *(char *)malloc(3) = 1; // here1
}

static void lose_large(void) {
  *(char *)malloc(300) = 1; // here2
}

int main(void) {
  if (everett_symbolic_u8("which") & 1)
    lose_small();
  else
    lose_large();
  return 0;
}

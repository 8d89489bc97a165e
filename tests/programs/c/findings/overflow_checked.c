// run: --check-overflow
// paths: 3
// finding: overflow 11
// not on -O3: overflow the optimiser leaves out what nothing uses, or computes it without that instruction
#include <everett.h>

int main(void) {
  int a = everett_symbolic_i32("a");
  if (a < 0)
    a = 0;
  return a + 1 > 0 ? 0 : 1; // here
}

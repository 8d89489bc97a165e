// run:
// paths: 5
// finding: division-by-zero 14
// not on -O3: division-by-zero the optimiser leaves out what nothing uses, or computes it without that instruction
#include <everett.h>

int main(void) {
  int a = everett_symbolic_i32("a");
  long b = everett_symbolic_i8("b");
  if (b < -1 || b > 3)
    return 0;
  if (b == -1)
    return 0;
  return a % b > 5; // here
}

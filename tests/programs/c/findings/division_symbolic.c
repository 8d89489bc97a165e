// run:
// paths: 2
// finding: division-by-zero 9
// not on -O3: division-by-zero the optimiser leaves out what nothing uses, or computes it without that instruction
#include <everett.h>

int main(void) {
  unsigned divisor = everett_symbolic_u32("divisor");
  return (100 / (divisor & 7)) > 200; // here
}

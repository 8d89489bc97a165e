// run:
// paths: 2
// finding: overflow 10
// not on -O3: overflow the optimiser leaves out what nothing uses, or computes it without that instruction
#include <everett.h>

int main(void) {
  int a = everett_symbolic_i32("a");
  volatile int b = -1;
  return a / b > 0 ? 0 : 0; // here
}

// run: --check-overflow
// paths: 2
// finding: overflow 9
// not on -O3: overflow the optimiser leaves out what nothing uses, or computes it without that instruction
#include <everett.h>

int main(void) {
  short width = (short)everett_symbolic_i32("width");
  int area = width * 70000; // here
  return area == 1;
}

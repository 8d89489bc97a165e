// run:
// paths: 2
// finding: undefined-shift 9
// not on -O3: undefined-shift the optimiser leaves out what nothing uses, or computes it without that instruction
#include <everett.h>

int main(void) {
  unsigned amount = everett_symbolic_u8("amount");
  return (1 << amount) & 0; // here
}

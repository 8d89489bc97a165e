// run:
// finding: out-of-bounds 10
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>

int main(void) {
  unsigned length = everett_symbolic_u8("length");
  everett_assume(length > 0 && length < 20);
  char local[length];
  local[10] = 1; // here
  return 0;
}

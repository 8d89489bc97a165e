// run:
// finding: out-of-bounds 12
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <alloca.h>
#include <everett.h>

int main(void) {
  unsigned length = everett_symbolic_u8("length");
  char *local = alloca(length);
  everett_assume(length >= 3);
  local[2] = 1;
  local[3] = 1; // here
  return 0;
}

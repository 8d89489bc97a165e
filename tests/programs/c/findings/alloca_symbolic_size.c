// run:
// finding: out-of-bounds 11
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

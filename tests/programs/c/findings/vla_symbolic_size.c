// run:
// finding: out-of-bounds 9
#include <everett.h>

int main(void) {
  unsigned length = everett_symbolic_u8("length");
  everett_assume(length > 0 && length < 20);
  char local[length];
  local[10] = 1; // here
  return 0;
}

// run:
// paths: 2
// finding: assertion 8
#include <everett.h>

int main(void) {
  unsigned x = everett_symbolic_u8("x");
  everett_assert(x < 200); // here
  return x < 200 ? 0 : 1;
}

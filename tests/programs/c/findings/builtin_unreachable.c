// run:
// paths: 4
// finding: unreachable 17
// not on -O3: unreachable the optimiser leaves out what cannot be reached, and the jump to it
#include <everett.h>

int main(void) {
  unsigned kind = everett_symbolic_u8("kind");
  switch (kind) {
  case 0:
    return 1;
  case 1:
    return 2;
  case 2:
    return 3;
  default:
    __builtin_unreachable(); // here
  }
}

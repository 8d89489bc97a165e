// run:
// paths: 2
// finding: undefined-shift 8
#include <everett.h>

int main(void) {
  unsigned amount = everett_symbolic_u8("amount");
  return (1 << amount) & 0; // here
}

// run:
// paths: 2
// finding: division-by-zero 8
#include <everett.h>

int main(void) {
  unsigned divisor = everett_symbolic_u32("divisor");
  return (100 / (divisor & 7)) > 200; // here
}

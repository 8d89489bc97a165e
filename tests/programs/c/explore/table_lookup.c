// run:
// finding: user-report 11
#include <everett.h>

static const unsigned char squares[16] = {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225};

int main(void) {
  unsigned a = everett_symbolic_u8("a") & 15;
  unsigned b = everett_symbolic_u8("b") & 15;
  if (a > 0 && b > a && squares[a] + squares[b] == squares[13])
    everett_report("5, 12, 13"); // here
  return 0;
}

// run: --max-instructions 100000
#include <everett.h>

static unsigned gcd(unsigned a, unsigned b) { return b == 0 ? a : gcd(b, a % b); }

int main(void) {
  unsigned a = everett_symbolic_u8("a") % 16, b = everett_symbolic_u8("b") % 16;
  unsigned g = gcd(a, b);
  if (g != 0 && (a % g != 0 || b % g != 0))
    everett_report("no divisor");
  return (int)g;
}

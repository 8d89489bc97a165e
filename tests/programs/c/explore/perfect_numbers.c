// run:
// finding: user-report 12
#include <everett.h>

int main(void) {
  unsigned n = everett_symbolic_u8("n");
  everett_assume(n > 6 && n < 32);
  unsigned sum = 0;
  for (unsigned d = 1; d < 16; d++)
    sum += (n % d == 0 && d < n) ? d : 0;
  if (sum == n)
    everett_report("28"); // here
  return 0;
}

// run:
// finding: user-report 10
#include <everett.h>

int main(void) {
  uint32_t a = everett_symbolic_u32("a");
  uint32_t b = everett_symbolic_u32("b");
  everett_assume(a > 1 && a < 1000 && b > 1 && b < 1000);
  if (a * b == 577 * 601)
    everett_report("factors"); // here
  return 0;
}

// run:
// finding: user-report 9
#include <everett.h>

int main(void) {
  double x;
  everett_make_symbolic(&x, sizeof x, "x");
  if (x > 1.5 && x < 1.75 && x * 2.0 == 3.25)
    everett_report("1.625"); // here
  return 0;
}

// Sums, products and quotients of unknown floats.
// run:
// paths: 7
// finding: user-report 14
// finding: user-report 16
// finding: user-report 18
#include <everett.h>

int main(void) {
  float x, y;
  everett_make_symbolic(&x, sizeof x, "x");
  everett_make_symbolic(&y, sizeof y, "y");
  if (x + y == 10.0f && x - y == 4.5f)
    everett_report("7.25 and 2.75"); // here
  if (x * x == 6.25f)
    everett_report("2.5 or -2.5"); // here
  if (x / 3 == 7)
    everett_report("near 21"); // here
  return 0;
}

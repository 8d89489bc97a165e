// run:
// finding: user-report 12
#include <everett.h>

int main(void) {
  double x;
  everett_make_symbolic(&x, sizeof x, "x");
  if (!(x > -1000.0 && x < 1000.0))
    return 1;
  int whole = (int)x;
  if (whole == -37 && x - whole == -0.5)
    everett_report("-37.5"); // here
  return 0;
}

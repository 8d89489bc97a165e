// run:
// finding: user-report 9
#include <everett.h>

int main(void) {
  float x;
  everett_make_symbolic(&x, sizeof x, "x");
  if (x != x)
    everett_report("not a number"); // here
  if (!(x <= 0.0f) && !(x > 0.0f))
    return 1;
  return 0;
}

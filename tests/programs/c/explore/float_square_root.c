// run:
// finding: user-report 10
#include <everett.h>
#include <math.h>

int main(void) {
  float x;
  everett_make_symbolic(&x, sizeof x, "x");
  if (x > 0.0f && x < 100.0f && sqrtf(x) == 3.5f)
    everett_report("12.25"); // here
  return 0;
}

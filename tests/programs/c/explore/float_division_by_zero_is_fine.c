// run:
#include <everett.h>
#include <math.h>

int main(void) {
  float x;
  everett_make_symbolic(&x, sizeof x, "x");
  float y = 1.0f / x;
  if (isinf(y))
    return x == 0.0f || fabsf(x) < 1e-37f ? 1 : 2;
  return 0;
}

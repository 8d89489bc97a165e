// exec:
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

int main(void) {
  printf("%d %d\n", FLT_EVAL_METHOD, fegetround() == FE_TONEAREST);
  volatile double x = 2.5, y = -2.5;
  printf("%g %g %ld %ld\n", rint(x), rint(y), lrint(x), lrint(y));
  printf("%g %g\n", nearbyint(3.5), round(y));
  return 0;
}

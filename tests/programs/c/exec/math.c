// exec:
#include <fenv.h>
#include <math.h>
#include <stdio.h>

int main(void) {
  double values[] = {0.5, -0.5, 1.0, 2.0, -3.7, 10.25, 1e-5, 123.456, 1e10};
  for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
    double x = values[i], whole;
    int exponent;
    printf("%a %a %a %a\n", sin(x), cos(x), tan(x), atan(x));
    printf("%a %a %a %a\n", exp(x / 100), sqrt(fabs(x)), cbrt(x), log(fabs(x)));
    printf("%a %a %a %a\n", floor(x), ceil(x), trunc(x), round(x));
    printf("%a %a %a %a\n", rint(x), nearbyint(x), fabs(x), log1p(fabs(x)));
    printf("%a %a %a %a\n", pow(fabs(x), 1.5), fmod(x, 0.7), remainder(x, 0.7), hypot(x, 3));
    printf("%a %a %a\n", log2(fabs(x)), log10(fabs(x)), exp2(x / 100));
    printf("%a %a %a\n", sinh(x / 1e9), cosh(x / 1e9), tanh(x));
    printf("%a %d ", frexp(x, &exponent), exponent);
    printf("%a %a\n", modf(x, &whole), whole);
    printf("%a %a %a\n", ldexp(x, 5), copysign(x, -1), nextafter(x, 1e300));
    printf("%ld %ld %lld %d\n", lround(x), lrint(x), llrint(x), ilogb(x));
    printf("%a %a %a %a\n", erf(x), tgamma(fabs(x) / 100 + 1), lgamma(fabs(x)), fma(x, x, 1.0));
    printf("%a %a %a\n", sinf((float)x), sqrtf(fabsf((float)x)), powf(fabsf((float)x), 0.3f));
    printf("%d %d %d %d\n", !!isnan(x), !!isinf(x), !!signbit(x), fpclassify(x) == FP_NORMAL);
  }
  printf("%a %a %a\n", asin(0.3), acos(0.3), atan2(-1, -2));
  printf("%g %g %g\n", fmin(1, NAN), fmax(-1, 2), fdim(5, 3));
  printf("%g %g %g\n", sqrt(-1.0), log(0.0), 1.0 / 0.0);
  printf("%a %a\n", asinh(1.5), acosh(1.5));
  printf("%a %a\n", scalbn(1.5, 10), logb(1000.0));
  volatile double third = 1.0;
  printf("%d\n", fegetround() == FE_TONEAREST);
  third /= 3;
  printf("%a\n", third);
  return 0;
}

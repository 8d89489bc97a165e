// exec:
#include <complex.h>
#include <stdio.h>

static void show(double complex z) { printf("%.12g %.12g\n", creal(z), cimag(z)); }

int main(void) {
  double complex a = 1 + 2 * I, b = 3 - 4 * I;
  show(a + b);
  show(a * b);
  show(a / b);
  show(conj(a));
  show(csqrt(b));
  show(cexp(a));
  show(cpow(a, b));
  printf("%.12g %.12g\n", cabs(b), carg(a));
  float complex f = 0.5f + 1.5f * I;
  f = f * f;
  printf("%g %g\n", crealf(f), cimagf(f));
  long double complex l = 1.5L - 0.25L * I;
  l = l * l / (1 + I);
  printf("%Lg %Lg\n", creall(l), cimagl(l));
  printf("%d\n", a == 1 + 2 * I);
  return 0;
}

// exec:
#include <math.h>
#include <stdio.h>

int main(void) {
  double values[] = {0.0, -0.0, 1.0, 0.1, 1.0 / 3, 123456789.125, 1e100, 1e-100, 5e-324, 1.7976931348623157e308, 2.5, 3.5};
  for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
    double v = values[i];
    printf("%f %e %g %a\n", v, v, v, v);
    printf("%.0f %.3e %.15g %.17g %#g %G\n", v, v, v, v, v, v);
  }
  printf("[%10.3f][%-10.3f][%+.2f][%010.2f][% f]\n", 3.14159, 3.14159, 3.14159, -3.14159, 2.0);
  printf("%f %F %e %g\n", INFINITY, -INFINITY, (double)NAN, -INFINITY);
  printf("%.20f\n%.50f\n", 0.1, 1e-20);
  printf("%.*f %*.1f\n", 2, 1.239, 8, 9.96);
  printf("%g %g %g %g\n", 100000.0, 1000000.0, 0.0001, 0.00001);
  printf("%.10A\n", 12.75);
  float f = 0.1f;
  printf("%.10f %g\n", f, f);
  return 0;
}

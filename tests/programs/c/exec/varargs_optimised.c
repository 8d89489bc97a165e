// build: -O2
// exec:
#include <stdarg.h>
#include <stdio.h>

struct mixed { double d; long l; };
struct large { long values[4]; };

__attribute__((noinline)) static double mix(int count, ...) {
  va_list list;
  va_start(list, count);
  double total = 0;
  for (int i = 0; i < count; i++) {
    total += va_arg(list, int);
    total += va_arg(list, double);
    struct mixed m = va_arg(list, struct mixed);
    total += m.d * (double)m.l;
    struct large b = va_arg(list, struct large);
    total += (double)b.values[i];
    total += (double)va_arg(list, long double);
  }
  va_end(list);
  return total;
}

int main(void) {
  struct mixed m = {2.5, -9};
  struct large b = {{10, 20, 30, 40}};
  printf("%.10g\n", mix(4, 1, 2., m, b, 3.25L, 4, 5., m, b, 6.25L, 7, 8., m, b, 9.25L, 10, 11., m, b, 12.5L));
  return 0;
}

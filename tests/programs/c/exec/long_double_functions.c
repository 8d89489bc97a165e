// Functions on long double that the library has as x87 assembly: bitcode and native program compute the same.
// exec:
#include <math.h>
#include <stdio.h>

int main(void) {
  static const long double numbers[] = {-0.99L, -0.5L, -1e-20L, 0, 0x1p-64L, 0.3L, 0.7L, 0.999999L, 1};
  for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    volatile long double x = numbers[i];
    printf("%La %La %La\n", acosl(x), asinl(x), atan2l(x, 0.4L));
    printf("%La %La %La %La\n", expm1l(x), log1pl(x), expm1l(50 * x), log1pl(1e6L * fabsl(x)));
    printf("%La %La %La %La\n", atanl(x), hypotl(x, 2), coshl(x), sinhl(x));
    printf("%La %La %La %La\n", tanhl(x), asinhl(x), acoshl(1 + x * x), atanhl(x / 2));
    printf("%La %La %La %La\n", cbrtl(x), powl(fabsl(x), 0.7L), erfl(x), tgammal(x + 1.2L));
  }
  return 0;
}

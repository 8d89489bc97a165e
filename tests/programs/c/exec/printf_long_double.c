// exec:
#include <float.h>
#include <math.h>
#include <stdio.h>

int main(void) {
  long double values[] = {0.0L, -1.5L, 1.0L / 3, 1e400L, 1e-400L, LDBL_MAX, LDBL_MIN, LDBL_EPSILON, INFINITY, 12345678901234567890.0L};
  for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
    printf("%Lf\n%Le %Lg %La %.21Lg\n", fabsl(values[i]) > 1e30L ? 1.0L : values[i], values[i], values[i], values[i], values[i]);
  return 0;
}

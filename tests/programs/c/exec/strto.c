// exec:
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void integer(const char *text, int base) {
  char *end;
  errno = 0;
  long value = strtol(text, &end, base);
  printf("%ld %ld %d\n", value, (long)(end - text), errno);
  errno = 0;
  unsigned long u = strtoul(text, &end, base);
  printf("%lu %ld %d\n", u, (long)(end - text), errno);
}

static void floating(const char *text) {
  char *end;
  errno = 0;
  double value = strtod(text, &end);
  printf("%.17g %a %ld %d\n", value, value, (long)(end - text), errno);
  printf("%.9g %.21Lg\n", (double)strtof(text, NULL), strtold(text, NULL));
}

int main(void) {
  integer("  123abc", 10);
  integer("-0x7f", 0);
  integer("zz", 36);
  integer("99999999999999999999", 10);
  integer("-99999999999999999999", 10);
  integer("", 10);
  integer("0b101", 0);
  floating("3.14159265358979323846");
  floating("1e400");
  floating("-1e-400");
  floating("0x1.8p3");
  floating("inf");
  floating("nan");
  floating(".5e");
  floating("1.7976931348623158e308");
  floating("4.9406564584124654e-324");
  floating("123456789012345678901234567890");
  printf("%d %ld %g %jd\n", atoi("77"), atol("-8"), atof("2.5x"), strtoimax("12", NULL, 0));
  return 0;
}

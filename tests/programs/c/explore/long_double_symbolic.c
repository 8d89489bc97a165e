// run:
// paths: 2
#include <everett.h>

int main(void) {
  int n = everett_symbolic_i8("n");
  long double x = (long double)n * 0.5L + 0.25L;
  if (x == 10.25L)
    return n == 20 ? 1 : 50;
  return 0;
}

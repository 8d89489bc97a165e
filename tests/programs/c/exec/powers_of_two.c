// build: -O2
// exec:
// The compiler makes `ldexp` of a power of two; the program itself has no such function.
#include <math.h>
#include <stdio.h>

int main(void) {
  volatile int power = 17;
  volatile float small = 3;
  int exponent = power;
  printf("%.3f %.3f\n", 1.5 * pow(2.0, -exponent + 25), (double)(exp2f((int)small) + 0.5f));
  return 0;
}

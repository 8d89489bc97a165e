// run:
// paths: 2
// finding: overflow 9
#include <everett.h>

int main(void) {
  int a = everett_symbolic_i32("a");
  volatile int b = -1;
  return a / b > 0 ? 0 : 0; // here
}

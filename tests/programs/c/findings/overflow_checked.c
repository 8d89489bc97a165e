// run: --check-overflow
// paths: 3
// finding: overflow 10
#include <everett.h>

int main(void) {
  int a = everett_symbolic_i32("a");
  if (a < 0)
    a = 0;
  return a + 1 > 0 ? 0 : 1; // here
}

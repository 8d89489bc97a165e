// run:
// paths: 0
#include <everett.h>

int main(void) {
  int x = everett_symbolic_i32("x");
  everett_assume(x > 5);
  everett_assume(x < 3);
  return 0;
}

// run:
// paths: 1
#include <everett.h>

int main(void) {
  int x = everett_symbolic_i32("x");
  if (x > 10)
    everett_assume(x < 5); // cannot hold
  return 0;
}

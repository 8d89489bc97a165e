// run:
// paths: 2
// finding: assertion 9
#include <assert.h>
#include <everett.h>

int main(void) {
  int x = everett_symbolic_i32("x");
  assert(x * 3 != 36); // here
  return 0;
}

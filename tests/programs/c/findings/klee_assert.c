// build: -DNDEBUG
// run:
// paths: 2
// finding: assertion 10
#include <klee/klee.h>

int main(void) {
  int x = klee_int("x");
  assert(x == 1);
  klee_assert(x != 77); // here
  return 0;
}

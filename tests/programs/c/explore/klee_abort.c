// run:
// paths: 2
// finding: abort 8
#include <klee/klee.h>

int main(void) {
  if (klee_int("x") == 3)
    klee_abort(); // here
  return 0;
}

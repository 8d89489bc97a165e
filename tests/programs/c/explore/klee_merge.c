// build: -O0
// build: -O2 -fno-inline
// run:
// paths: 1
// Both ways are one path behind the close, with one value or the other in memory and in registers.
#include <assert.h>
#include <klee/klee.h>

int main(void) {
  int x = klee_int("x"), y = 0;
  klee_open_merge();
  if (x > 10)
    y = 1;
  klee_close_merge();
  assert(y == (x > 10));
  return y;
}

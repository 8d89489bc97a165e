// run:
#include <klee/klee.h>

int main(void) {
  int x = klee_int("x"), y = 0;
  klee_open_merge();
  if (x > 10)
    y = 1;
  klee_close_merge();
  return y;
}

// build: -O0
// run:
// paths: 5
// finding: division-by-zero 21
// What cannot be merged goes on by itself: a path that writes, one that ends, one with an error, and one with a block of
// memory of its own. The two others are one. Regions in regions are merged with the outer one.
#include <klee/klee.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
  int x = klee_int("x"), y = 0;
  char *block = 0;
  klee_assume(x >= 0 & x < 6);
  klee_open_merge();
  if (x == 0)
    write(1, "x", 1);
  else if (x == 1)
    return 7;
  else if (x == 2)
    y = 1 / y;
  else if (x == 3)
    block = malloc(8);
  else if (x == 4)
    y = 2;
  else
    y = 3;
  klee_open_merge();
  if (y == 3)
    y = 4;
  klee_close_merge();
  klee_close_merge();
  free(block);
  return y;
}

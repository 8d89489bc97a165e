// run:
// paths: 2
#include <klee/klee.h>

int main(void) {
  int x = klee_range(-5, 5, "x");
  int y;
  klee_make_symbolic(&y, sizeof y, "y");
  klee_assume(y > 10);
  klee_assume(y < 20);
  if (!klee_is_replay() && (!klee_is_symbolic(x) || klee_is_symbolic(4)))
    return 50;
  klee_prefer_cex(&y, y == 15);
  if (x < -5 || x >= 5 || y <= 10 || y >= 20)
    return 60;
  if (x == 0)
    return y == 15 ? 1 : 2;
  return 0;
}

// run:
// paths: 3
#include <klee/klee.h>

static int get_sign(int x) {
  if (x == 0)
    return 0;
  if (x < 0)
    return 255;
  return 1;
}

int main(void) {
  int a;
  klee_make_symbolic(&a, sizeof(a), "a");
  return get_sign(a);
}

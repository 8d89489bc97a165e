// run:
// paths: 1
#include <everett.h>
#include <klee/klee.h>

int main(void) {
  int x = everett_symbolic_i32("x");
  if (x < 0)
    everett_silent_exit(1);
  if (x > 1000)
    klee_silent_exit(2);
  return 0;
}

// run:
// paths: 3
#include <klee/klee.h>

int main(void) {
  switch (klee_choose(3)) {
  case 0:
    return 5;
  case 1:
    return 6;
  default:
    return 7;
  }
}

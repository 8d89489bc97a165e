// run:
// paths: 6
#include <everett.h>

int main(void) {
  switch (everett_symbolic_u32("x")) {
  case 0:
    return 10;
  case 1:
  case 2:
    return 11;
  case 7:
    return 12;
  case 100000:
    return 13;
  case 0xffffffff:
    return 14;
  default:
    return 15;
  }
}

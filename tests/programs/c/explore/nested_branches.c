// run:
// paths: 8
#include <everett.h>

int main(void) {
  unsigned char a = everett_symbolic_u8("a");
  unsigned char b = everett_symbolic_u8("b");
  int path = 0;
  if (a < 50) {
    path += 1;
    if (b < 50)
      path += 2;
    if (a + b == 70)
      path += 4;
  } else if (b > 200) {
    path += 8;
    if (a > b) // both are possible
      path += 16;
  } else if (a > 100 && a < 99) { // never
    path += 64;
  }
  return path;
}

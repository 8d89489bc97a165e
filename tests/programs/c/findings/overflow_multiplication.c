// run: --check-overflow
// paths: 2
// finding: overflow 8
#include <everett.h>

int main(void) {
  short width = (short)everett_symbolic_i32("width");
  int area = width * 70000; // here
  return area == 1;
}

// run:
// paths: 1
#include <everett.h>

int main(void) {
  int a = everett_symbolic_i32("a");
  return (a + 1 > 0) & 0;
}

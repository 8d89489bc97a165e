// build: -fsanitize=signed-integer-overflow -fsanitize-trap=all
// run:
// finding: trap 8
#include <everett.h>

int main(void) {
  int a = everett_symbolic_i32("a");
  int b = a * 2; // here
  return b & 0;
}

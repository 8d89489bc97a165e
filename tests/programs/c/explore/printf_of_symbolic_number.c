// run:
// paths: 7
#include <everett.h>
#include <stdio.h>

// The sign and the number of digits are decided on the way.
int main(void) {
  signed char n = everett_symbolic_i8("n");
  char text[16];
  return sprintf(text, "%d", n);
}

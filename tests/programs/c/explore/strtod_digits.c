// A fraction with two unknown digits: one division.
// run:
// finding: user-report 14
#include <everett.h>
#include <stdlib.h>

int main(void) {
  char text[] = "1.00";
  for (int i = 2; i < 4; i++) {
    text[i] = everett_symbolic_u8("digit");
    everett_assume(text[i] >= '0' && text[i] <= '9');
  }
  if (strtod(text, NULL) == 1.25)
    everett_report("25"); // here
  return 0;
}

// run:
// finding: user-report 13
#include <everett.h>
#include <stdio.h>
#include <string.h>

// The digits are symbolic and go through the library.
int main(void) {
  unsigned char n = everett_symbolic_u8("n");
  char text[8];
  snprintf(text, sizeof text, "%u", n);
  if (strcmp(text, "213") == 0)
    everett_report("213"); // here
  return 0;
}

// A short decimal number is one division, whatever its characters: no array of digits, and few paths.
// run:
// finding: user-report 15
#include <everett.h>
#include <stdlib.h>

int main(void) {
  char text[] = "00.00", *end;
  for (int i = 0; i < 5; i++) {
    if (i == 2) continue;
    text[i] = everett_symbolic_u8("digit");
    everett_assume((text[i] >= '0') & (text[i] <= '9'));
  }
  if (atof(text) == 12.34)
    everett_report("12.34"); // here
  char any[4] = "";
  for (int i = 0; i < 3; i++)
    any[i] = everett_symbolic_u8("character");
  double value = strtod(any, &end);
  return end == any ? 1 : *end ? 2 : value == 0.5 ? 3 : value == 2e9 ? 4 : 5;
}

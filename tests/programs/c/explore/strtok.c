// run:
// finding: user-report 13
#include <everett.h>
#include <string.h>

int main(void) {
  char text[6];
  everett_make_symbolic(text, sizeof text, "text");
  text[5] = 0;
  char *first = strtok(text, " ");
  char *second = strtok(NULL, " ");
  if (first && second && strcmp(first, "a") == 0 && strcmp(second, "bc") == 0)
    everett_report("a bc"); // here
  return 0;
}

// run:
// paths: 3
// finding: null-pointer 14
#include <everett.h>
#include <string.h>

// strchr has no match on one path.
int main(void) {
  char text[3];
  everett_make_symbolic(text, 2, "text");
  text[2] = 0;
  everett_assume(text[0] != 0 && text[0] != '=');
  char *value = strchr(text, '=');
  *value = 0; // here
  return 0;
}

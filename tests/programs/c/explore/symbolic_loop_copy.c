// run:
// paths: 9
#include <everett.h>
#include <string.h>

int main(void) {
  char from[9], to[9];
  everett_make_symbolic(from, sizeof from, "from");
  from[8] = 0;
  strcpy(to, from);
  return (int)strlen(to) != (int)strlen(from);
}

// run:
// finding: use-after-return 14
#include <stdlib.h>

static char *name(void) {
  char local[16];
  local[0] = 'x';
  char *volatile pointer = local;
  return pointer;
}

int main(void) {
  char *text = name();
  return text[0]; // here
}

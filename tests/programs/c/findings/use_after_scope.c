// run:
// finding: use-after-return 15
// not on -O3: use-after-return the optimiser leaves out an access of which nothing is used, or knows what it gives
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

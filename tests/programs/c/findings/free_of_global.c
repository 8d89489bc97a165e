// run:
// finding: invalid-free 9
#include <stdlib.h>

static char global[16];

int main(void) {
  void *volatile pointer = global;
  free(pointer); // here
  return 0;
}

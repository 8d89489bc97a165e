// run:
// finding: invalid-free 8
#include <stdlib.h>

int main(void) {
  char local[16];
  void *volatile pointer = local;
  free(pointer); // here
  return 0;
}

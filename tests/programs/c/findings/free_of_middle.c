// run:
// finding: invalid-free 8
#include <stdlib.h>

int main(void) {
  char *block = malloc(16);
  char *volatile middle = block + 8;
  free(middle); // here
  return 0;
}

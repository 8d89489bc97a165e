// run:
// finding: null-pointer 12
#include <stdlib.h>

struct item {
  int *value;
};

// Fresh memory is zero here; the program must not rely on it.
int main(void) {
  struct item *item = malloc(sizeof *item);
  *item->value = 1; // here
  return 0;
}

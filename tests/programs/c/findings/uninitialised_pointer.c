// run:
// finding: null-pointer 13
// not on -O3: null-pointer the call is the last thing that the function does, and leaves no frame of it behind
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

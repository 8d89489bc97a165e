// run:
// finding: invalid-free 7
#include <stdlib.h>

int main(void) {
  void *volatile literal = "literal";
  char *grown = realloc(literal, 20); // here
  return grown[0];
}

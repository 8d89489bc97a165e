// run:
// paths: 1
#include <everett.h>
#include <stdlib.h>

int main(void) {
  unsigned length = everett_symbolic_u8("length");
  char *block = malloc(length + 1);
  block[length] = 0;
  free(block);
  return 0;
}

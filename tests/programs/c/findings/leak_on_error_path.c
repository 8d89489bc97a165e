// run: --check-leaks
// paths: 2
// finding: leak 9
// not on -O3: leak the optimiser leaves the allocation out
#include <everett.h>
#include <stdlib.h>

static int parse(unsigned char first) {
  char *buffer = malloc(64); // here
  buffer[0] = (char)first;
  if (first == 'x')
    return -1;
  free(buffer);
  return 0;
}

int main(void) {
  return parse(everett_symbolic_u8("first")) != 0;
}

// run:
// paths: 1
#include <everett.h>
#include <stdlib.h>

int main(void) {
  unsigned count = everett_symbolic_u8("count");
  everett_assume(count > 0);
  int *cells = calloc(count, sizeof *cells);
  unsigned index = everett_symbolic_u8("index");
  everett_assume(index < count);
  int value = cells[index];
  free(cells);
  return value;
}

// run:
// paths: 4
// The path leaves few positions of a large block, so that a write is one path, not one for each position.
#include <everett.h>
#include <stdlib.h>

int main(void) {
  unsigned char *block = calloc(1, 1 << 20);
  unsigned index = everett_symbolic_u32("index");
  if (index < 500000 || index >= 500040)
    return 1;
  block[index] = 3;
  int result = block[500010] == 3 ? 2 : block[index ^ 1] == 3 ? 3 : 0;
  free(block);
  return result;
}

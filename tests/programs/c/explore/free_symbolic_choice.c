// run:
// paths: 3
// finding: double-free 13
#include <everett.h>
#include <stdlib.h>

int main(void) {
  char *blocks[3];
  for (int i = 0; i < 3; i++)
    blocks[i] = malloc(8);
  unsigned which = everett_symbolic_u8("which") % 3;
  free(blocks[0]);
  free(blocks[which]); // here
  return 0;
}

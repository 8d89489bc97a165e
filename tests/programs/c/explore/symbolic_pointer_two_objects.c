// run:
#include <everett.h>
#include <stdlib.h>

int main(void) {
  int *small = malloc(4 * sizeof *small), *large = malloc(8 * sizeof *large);
  for (int i = 0; i < 4; i++)
    small[i] = 1;
  for (int i = 0; i < 8; i++)
    large[i] = 2;
  unsigned pick = everett_symbolic_u8("pick");
  int *chosen = pick & 1 ? small : large;
  return chosen[(pick >> 1) & 3];
}

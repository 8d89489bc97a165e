// run:
// paths: 4
#include <everett.h>
#include <stdlib.h>

int main(void) {
  int *blocks[4];
  for (int i = 0; i < 4; i++) {
    blocks[i] = malloc(sizeof(int));
    *blocks[i] = i * 11;
  }
  unsigned which = everett_symbolic_u8("which") & 3;
  *blocks[which] += 1;
  int sum = 0;
  for (int i = 0; i < 4; i++)
    sum += *blocks[i];
  if (sum != 67)
    return 100;
  return *blocks[which];
}

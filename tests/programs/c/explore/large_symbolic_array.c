// run:
// paths: 2
#include <everett.h>

static unsigned char table[600];

int main(void) {
  for (int i = 0; i < 600; i++)
    table[i] = (unsigned char)(i * 7);
  unsigned index = everett_symbolic_u32("index");
  everett_assume(index < 600);
  table[index] = 255;
  if (table[index ^ 1] == 7 * 30)
    return 1;
  return 0;
}

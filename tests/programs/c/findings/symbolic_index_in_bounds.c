// run:
// paths: 1
#include <everett.h>

int main(void) {
  unsigned index = everett_symbolic_u32("index");
  int table[16] = {0};
  table[index % 16] = 1;
  return table[3] * 0;
}

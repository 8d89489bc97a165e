// build: -O1 -fsanitize=bounds,shift,integer-divide-by-zero -fsanitize-trap=all
// run:
// paths: 2
// finding: trap 11
#include <everett.h>

static int table[4] = {1, 1, 1, 1};

int main(void) {
  unsigned index = everett_symbolic_u8("index");
  return table[index]; // here
}

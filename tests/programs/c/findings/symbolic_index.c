// run:
// paths: 2
// finding: out-of-bounds 11
#include <everett.h>

static int table[10] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};

int main(void) {
  uint8_t index;
  everett_make_symbolic(&index, sizeof index, "index");
  return table[index] * 0; // here
}

// run:
// paths: 2
// finding: out-of-bounds 12
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>

static int table[10] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};

int main(void) {
  uint8_t index;
  everett_make_symbolic(&index, sizeof index, "index");
  return table[index] * 0; // here
}

// run:
// finding: out-of-bounds 13
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>
#include <stdlib.h>

// The check has the upper end only.
int main(void) {
  int index = everett_symbolic_i32("index");
  int *table = calloc(16, sizeof *table);
  if (index >= 16)
    return 1;
  table[index] = 1; // here
  return 0;
}

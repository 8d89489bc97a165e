// run:
// finding: out-of-bounds 15
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>

struct row {
  int key;
  int value;
};
static struct row rows[4] = {{1, 10}, {2, 20}, {3, 30}, {4, 40}};

int main(void) {
  unsigned index = everett_symbolic_u32("index");
  struct row *row = &rows[index & 7];
  if (row->key == 3) // here
    return row->value;
  return 0;
}

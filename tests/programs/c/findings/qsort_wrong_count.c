// run:
// finding: out-of-bounds 6
#include <stdlib.h>

static int compare(const void *a, const void *b) {
  return *(const int *)a - *(const int *)b; // here
}

int main(void) {
  int values[3] = {3, 2, 1};
  qsort(values, 4, sizeof *values, compare);
  return values[0];
}

// run: --check-leaks
// finding: leak 10
// not on -O3: leak the optimiser leaves the allocation out
#include <stdlib.h>

static void *kept;

int main(void) {
  kept = malloc(10);
  char *lost = malloc(20); // here
  lost[0] = 1;
  lost = NULL;
  return 0;
}

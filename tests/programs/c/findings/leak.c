// run: --check-leaks
// finding: leak 9
#include <stdlib.h>

static void *kept;

int main(void) {
  kept = malloc(10);
  char *lost = malloc(20); // here
  lost[0] = 1;
  lost = NULL;
  return 0;
}

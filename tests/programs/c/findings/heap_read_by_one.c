// run:
// paths: 1
// finding: out-of-bounds 12
#include <stdlib.h>

int main(void) {
  char *block = malloc(10);
  for (int i = 0; i < 10; i++)
    block[i] = 1;
  int sum = 0;
  for (int i = 0; i <= 10; i++)
    sum += block[i]; // here
  free(block);
  return sum;
}

// run:
// paths: 1
// finding: out-of-bounds 13
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
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

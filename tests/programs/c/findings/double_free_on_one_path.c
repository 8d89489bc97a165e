// run:
// paths: 2
// finding: double-free 13
// not on -O3: double-free the optimiser leaves the allocation out
#include <everett.h>
#include <stdlib.h>

int main(void) {
  char *block = malloc(5);
  int error = everett_symbolic_i32("error");
  if (error == 42)
    free(block);
  free(block); // here
  return 0;
}

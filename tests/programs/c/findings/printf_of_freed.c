// run:
// finding: use-after-free 10
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  char *name = strdup("name");
  free(name);
  printf("%s\n", name); // here
  return 0;
}

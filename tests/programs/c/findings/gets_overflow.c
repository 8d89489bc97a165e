// run:
// args: --sym-stdin 6
// finding: out-of-bounds 8
#include <stdio.h>

int main(void) {
  char room[4];
  return scanf("%s", room); // here
}

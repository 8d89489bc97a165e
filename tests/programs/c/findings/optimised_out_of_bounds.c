// build: -O2
// run:
// args: --sym-arg 2
// finding: out-of-bounds 14
#include <stdlib.h>

char *volatile shared;

int main(int argc, char **argv) {
  shared = calloc(4, 1);
  char *block = shared;
  int sum = argc;
  for (int i = 0; i < argv[1][0] - '0'; i++)
    sum += block[i]; // here
  return sum > 200;
}

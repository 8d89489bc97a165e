// run:
// args: --sym-arg 5
// finding: out-of-bounds 15
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <string.h>

static char name[5];

int main(int argc, char **argv) {
  size_t length = strlen(argv[1]);
  if (length > sizeof name)
    return 1;
  for (size_t i = 0; i < length; i++)
    name[i] = argv[1][i];
  name[length] = 0; // here
  return argc - 2;
}

// run:
// args: --sym-arg 4
// finding: out-of-bounds 9
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <string.h>

int main(int argc, char **argv) {
  char room[4];
  strcpy(room, argv[1]); // here
  return argc - 2;
}

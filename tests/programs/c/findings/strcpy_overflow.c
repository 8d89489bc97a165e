// run:
// args: --sym-arg 4
// finding: out-of-bounds 8
#include <string.h>

int main(int argc, char **argv) {
  char room[4];
  strcpy(room, argv[1]); // here
  return argc - 2;
}

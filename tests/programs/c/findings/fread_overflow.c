// run:
// args: --sym-stdin 16
// finding: out-of-bounds 8
#include <unistd.h>

int main(void) {
  char room[8];
  return read(0, room, 16) != 16; // here
}

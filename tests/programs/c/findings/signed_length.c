// run:
// finding: out-of-bounds 13
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>
#include <string.h>

int main(void) {
  char room[64];
  static char from[64];
  int length = everett_symbolic_i8("length");
  if (length > 64)
    return 1;
  memcpy(room, from, (size_t)length); // here
  return 0;
}

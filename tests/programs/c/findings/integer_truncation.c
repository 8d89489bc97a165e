// run:
// finding: out-of-bounds 17
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>
#include <stdlib.h>
#include <string.h>

// The size is checked in 16 bits and used in 32.
int main(void) {
  uint32_t length = everett_symbolic_u32("length");
  everett_assume(length <= 0x10010);
  uint16_t checked = (uint16_t)length;
  if (checked > 32)
    return 1;
  char *room = malloc(32);
  if (length >= 0x10000)
    room[length - 0x10000 + 32] = 1; // here
  free(room);
  return 0;
}

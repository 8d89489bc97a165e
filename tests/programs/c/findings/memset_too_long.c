// run:
// finding: out-of-bounds 11
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <everett.h>
#include <string.h>

int main(void) {
  char room[100];
  size_t length = everett_symbolic_u8("length");
  everett_assume(length <= 101);
  memset(room, 1, length); // here
  return 0;
}

// run:
// finding: user-report 13
#include <everett.h>

typedef unsigned __int128 wide;

int main(void) {
  uint64_t a = everett_symbolic_u64("a");
  wide square = (wide)a * 3;
  if ((uint64_t)(square >> 64) == 2 && (uint64_t)square == 0)
    return 77; // not divisible by 3
  if ((uint64_t)(square >> 64) == 2 && (uint64_t)square == 1)
    everett_report("a third of 2^65 + 1"); // here
  return 0;
}

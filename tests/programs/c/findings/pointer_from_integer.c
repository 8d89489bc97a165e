// run:
// paths: 2
// finding: wild-pointer 13
#include <everett.h>

static int target = 7;

// The program checks the pointer itself, and lets one wild address through.
int main(void) {
  uint64_t address = everett_symbolic_u64("address");
  if (address != (uint64_t)&target && address != 0xdead0000)
    everett_silent_exit(0);
  return *(int *)address == 7 ? 0 : 1; // here
}

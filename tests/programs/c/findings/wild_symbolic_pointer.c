// run:
// paths: 1
// finding: wild-pointer 10
#include <everett.h>

// However many addresses there are, it is one finding.
int main(void) {
  uint64_t address = everett_symbolic_u64("address");
  everett_assume(address > 0x700000000000 && address < 0x700000001000);
  return *(char *)address; // here
}

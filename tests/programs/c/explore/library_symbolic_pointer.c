// run:
// finding: wild-pointer 9
#include <everett.h>
#include <string.h>

int main(void) {
  char *address = (char *)everett_symbolic_u64("address");
  everett_assume((uint64_t)address > 0x700000000000 && (uint64_t)address < 0x700000001000);
  return (int)strlen(address); // here
}

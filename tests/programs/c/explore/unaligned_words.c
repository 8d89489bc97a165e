// run:
// finding: user-report 14
#include <everett.h>
#include <string.h>

int main(void) {
  unsigned char bytes[9];
  everett_make_symbolic(bytes, sizeof bytes, "bytes");
  uint32_t a;
  uint64_t b;
  memcpy(&a, bytes + 3, 4);
  memcpy(&b, bytes + 1, 8);
  if (a == 0xdeadbeef && b >> 48 == 0x1234 && (b & 0xffff) == 0x4321)
    everett_report("words"); // here
  return 0;
}

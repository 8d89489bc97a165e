// run:
// finding: user-report 22
#include <everett.h>

struct header {
  unsigned version : 4;
  unsigned length : 4;
  uint8_t kind;
  uint16_t port;
  union {
    uint32_t number;
    uint8_t bytes[4];
  } address;
};

int main(void) {
  struct header header, copy;
  everett_make_symbolic(&header, sizeof header, "header");
  copy = header;
  if (copy.version == 4 && copy.length == 5 && __builtin_bswap16(copy.port) == 8080 && copy.address.bytes[0] == 127 &&
      copy.address.number >> 24 == 1)
    everett_report("127.*.*.1:8080"); // here
  return 0;
}

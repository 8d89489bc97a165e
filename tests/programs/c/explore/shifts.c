// run:
// finding: user-report 11
#include <everett.h>

int main(void) {
  uint32_t value = everett_symbolic_u32("value");
  uint8_t by = everett_symbolic_u8("by") & 31;
  int32_t arithmetic = (int32_t)value >> by;
  uint32_t logical = value >> by;
  if (arithmetic == -5 && logical == 0x7fffffb && by > 0)
    everett_report("by 5"); // here
  return 0;
}

// An index with few values among many positions: reads and writes of a ring that is computed from a digit.
// run:
// paths: 3
// finding: user-report 19
// finding: assertion 21
#include <assert.h>
#include <everett.h>

static unsigned ring[2048];

int main(void) {
  unsigned char digit = everett_symbolic_u8("digit") % 10;
  unsigned start = (digit - 3u) & 2047;
  unsigned value = everett_symbolic_u8("value");
  ring[start] = value + 1;
  ring[(start + 1) & 2047] += 7;
  unsigned sum = ring[start] + ring[2047] + ring[(start + 5) & 2047];
  if (sum == 512 && start > 100)
    everett_report("2047 and 255"); // here
  else
    assert(ring[0] < 256); // here
  return 0;
}

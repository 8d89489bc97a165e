// build: -O3
// run:
// finding: user-report 14
#include <everett.h>

static unsigned char data[64];

int main(void) {
  everett_make_symbolic(data, sizeof data, "data");
  unsigned sum = 0;
  for (int i = 0; i < 64; i++)
    sum += data[i];
  if (sum == 64 * 255)
    everett_report("all ones"); // here
  return 0;
}

// run: --max-instructions 100000
// paths: 2
// finding: hang 11
#include <everett.h>

int main(void) {
  unsigned char step = everett_symbolic_u8("step");
  if (step != 0)
    return 0;
  volatile int position = 0;
  while (position < 10)
    position += step; // here
  return 0;
}

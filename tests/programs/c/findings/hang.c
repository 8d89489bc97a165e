// run: --max-instructions 100000
// paths: 1
// finding: hang 13
// complete: no
#include <everett.h>

int main(void) {
  unsigned char step = everett_symbolic_u8("step");
  if (step != 0)
    return 0;
  volatile int position = 0;
  // On one line: how many instructions come before it depends on the length of the program's name.
  while (position < 10) position += step;
  return 0;
}

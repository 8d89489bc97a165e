// run:
// paths: 2
// finding: abort 9
#include <everett.h>
#include <stdlib.h>

int main(void) {
  if (everett_symbolic_u8("x") == 200)
    abort(); // here
  return 0;
}

// build: -O1 -fsanitize=undefined
// run:
// paths: 3
// finding: trap 18
// A function that is called with another type: its type is in front of its code, natively too. Functions of the C
// library have none there.
#include <everett.h>
#include <stdlib.h>

static int twice(int x) { return 2 * x; }
static int half(double x) { return (int)(x / 2); }

int main(void) {
  int (*functions[])(int) = {twice, abs, (int (*)(int))half};
  unsigned which = everett_symbolic_u8("which");
  everett_assume(which < 3);
  int (*function)(int) = functions[which];
  return function(which) > 7; // here
}

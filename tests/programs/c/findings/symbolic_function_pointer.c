// run:
// paths: 4
// finding: out-of-bounds 15
#include <everett.h>

static int one(void) { return 1; }
static int two(void) { return 2; }
static int three(void) { return 3; }
static int (*const operations[3])(void) = {one, two, three};

int main(void) {
  unsigned which = everett_symbolic_u8("which");
  if (which > 3)
    everett_silent_exit(0);
  return operations[which](); // here
}

// build: -fsanitize=undefined
// run:
// paths: 2
// Functions that are called through pointers with their own types pass the check.
#include <everett.h>

static int twice(int x) { return x & 1 ? 2 : 0; }
static int same(int x) { return x & 1; }

int main(void) {
  int (*functions[])(int) = {twice, same};
  int which = everett_symbolic_u8("which") & 1;
  return which ? functions[1](1) : functions[0](everett_symbolic_u8("x") & 1);
}

// run:
// paths: 3
#include <everett.h>

int main(void) {
  uint64_t x = everett_symbolic_u64("x");
  everett_assume(x != 0);
  if (__builtin_clzll(x) == 20 && __builtin_ctzll(x) == 40)
    return x >> 43 == 1 ? 1 : 100;
  return 0;
}

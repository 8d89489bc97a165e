// build: -O2
// run:
// paths: 1
#include <everett.h>

static uint32_t left(uint32_t x, unsigned n) {
  n &= 31;
  return x << n | x >> (-n & 31);
}

static uint32_t right(uint32_t x, unsigned n) {
  n &= 31;
  return x >> n | x << (-n & 31);
}

int main(void) {
  uint32_t x = everett_symbolic_u32("x");
  unsigned n = everett_symbolic_u8("n");
  return right(left(x, n), n) == x ? 0 : 1;
}

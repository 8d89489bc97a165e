// run:
// paths: 1
#include <everett.h>

static int count_slow(uint32_t x) {
  int count = 0;
  for (int i = 0; i < 32; i++)
    count += (x >> i) & 1;
  return count;
}

int main(void) {
  uint32_t x = everett_symbolic_u32("x") & 0xffff;
  if (__builtin_popcount(x) != count_slow(x))
    return 1;
  if (__builtin_bswap32(__builtin_bswap32(x)) != x)
    return 2;
  if ((x ^ (x >> 1)) == 0x12345678)
    return 3;
  if (((x & -x) & ((x & -x) - 1)) != 0)
    return 4;
  return 0;
}

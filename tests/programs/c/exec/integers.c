// exec:
#include <limits.h>
#include <stdint.h>
#include <stdio.h>

int main(void) {
  volatile int32_t a = -17, b = 5;
  volatile uint32_t u = 0xfffffff0, v = 7;
  volatile int64_t l = -1234567890123456789, m = 987654321;
  volatile uint64_t x = 0xfedcba9876543210, y = 12345;
  volatile int8_t c = -128;
  volatile uint16_t s = 65535;
  printf("%d %d %d %d\n", a / b, a % b, a >> 2, a << 3);
  printf("%u %u %u %u\n", u / v, u % v, u >> 3, u * v);
  printf("%ld %ld %ld\n", l / m, l % m, l >> 33);
  printf("%lu %lu %lx\n", x / y, x % y, x * y);
  printf("%d %d %d\n", c, -c, (int8_t)-c);
  printf("%d %u\n", s + 1, (uint16_t)(s + 1));
  printf("%d %d\n", (int)(a < (int)u), (uint32_t)a < u);
  printf("%d %d %d\n", __builtin_popcountll(x), __builtin_clz(v), __builtin_ctzll(x));
  printf("%d %d\n", __builtin_ffs(0), __builtin_parity(u));
  int sum;
  printf("%d ", __builtin_add_overflow(INT_MAX, b, &sum));
  printf("%d ", sum);
  printf("%d ", __builtin_mul_overflow(b, 100, &sum));
  printf("%d\n", sum);
  unsigned long product;
  printf("%d %lu\n", __builtin_umull_overflow(x, 3, &product), product);
  printf("%x %lx %x\n", __builtin_bswap32(u), __builtin_bswap64(x), __builtin_bswap16(0x1234));
  printf("%u %u\n", __builtin_rotateleft32(u, 8), __builtin_rotateright32(u, 4));
  printf("%x\n", __builtin_bitreverse32(0x80000001));
  printf("%d %d\n", (int)3.99, (int)-3.99);
  printf("%lu %d\n", (uint64_t)1.8e19, (int)(float)16777217);
  printf("%.1f %.1f %a\n", (double)x, (double)l, (float)x);
  _BitInt(77) big = 1;
  big <<= 70;
  big -= 1;
  printf("%lx\n", (unsigned long)(big >> 10));
  return 0;
}

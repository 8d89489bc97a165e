// exec:
#include <stdio.h>

typedef __int128 wide;
typedef unsigned __int128 uwide;

static void show(uwide value) {
  char digits[50];
  int at = 49;
  digits[at] = 0;
  do
    digits[--at] = (char)('0' + (int)(value % 10));
  while (value /= 10);
  puts(digits + at);
}

int main(void) {
  volatile uwide a = ((uwide)0x123456789abcdefULL << 64) | 0xfedcba9876543210ULL;
  volatile uwide b = 0xdeadbeefcafebabeULL;
  show(a);
  show(a + b);
  show(a - b);
  show(a * b);
  show(a / b);
  show(a % b);
  show(a >> 13);
  show(a << 77);
  show(a & b);
  show(a ^ ~b);
  volatile wide n = -(wide)a;
  show((uwide)(n / 1000));
  show((uwide)(n % 1000));
  show((uwide)(n >> 70));
  printf("%d %d %d\n", n < 0, (uwide)n > a, a == b);
  printf("%g %Lg\n", (double)a, (long double)n);
  show((uwide)1e30);
  show((uwide)1.5e30L);
  return 0;
}

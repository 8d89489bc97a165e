// exec:
#include <stdio.h>
#include <string.h>

struct flags {
  unsigned a : 1;
  unsigned b : 3;
  int c : 4;
  unsigned : 0;
  unsigned long long d : 40;
  unsigned char e : 5;
  _Bool f : 1;
};

struct __attribute__((packed)) packed {
  unsigned char tag;
  int value;
  unsigned low : 12;
  unsigned high : 20;
};

int main(void) {
  struct flags f;
  memset(&f, 0, sizeof f);
  f.a = 3;
  f.b = 13;
  f.c = 9;
  f.d = 0x123456789abcULL;
  f.e = 33;
  f.f = 4;
  printf("%u %u %d %llx %u %d %zu\n", f.a, f.b, f.c, (unsigned long long)f.d, f.e, f.f, sizeof f);
  f.c++;
  f.b--;
  f.d += 0xffffffffff;
  printf("%d %u %llx\n", f.c, f.b, (unsigned long long)f.d);
  struct packed p = {1, -2, 0xabc, 0xfffff};
  p.low += 0x600;
  printf("%d %d %x %x %zu\n", p.tag, p.value, p.low, p.high, sizeof p);
  unsigned char bytes[sizeof p];
  memcpy(bytes, &p, sizeof p);
  for (unsigned i = 0; i < sizeof p; i++)
    printf("%02x", bytes[i]);
  puts("");
  return 0;
}

// build: -O1
// exec:
#include <stdio.h>

typedef int v4 __attribute__((vector_size(16)));
typedef float f4 __attribute__((vector_size(16)));
typedef double d2 __attribute__((vector_size(16)));
typedef unsigned char b16 __attribute__((vector_size(16)));
typedef short s8 __attribute__((vector_size(16)));

static void show(v4 v) { printf("%d %d %d %d\n", v[0], v[1], v[2], v[3]); }

int main(void) {
  volatile int one = 1;
  v4 a = {one, 2, 3, 4}, b = {10, -20, 30, -40};
  show(a + b);
  show(a * b);
  show(b / a);
  show(a << 2);
  show(b >> a);
  show(a < b);
  show(-(a == b));
  show(a & ~b);
  show(__builtin_shufflevector(a, b, 0, 4, 3, 7));
  f4 f = {one + 0.5f, 2, 3, 4};
  f = f * f - 1;
  printf("%g %g %g %g\n", f[0], f[1], f[2], f[3]);
  show(__builtin_convertvector(f, v4));
  d2 d = {one * 2.0, 3.0};
  d /= 7;
  printf("%a %a\n", d[0], d[1]);
  b16 bytes = {0};
  for (int i = 0; i < 16; i++)
    bytes[i] = (unsigned char)(i * 17 * one);
  bytes += 100;
  for (int i = 0; i < 16; i++)
    printf("%d ", bytes[i]);
  s8 shorts = (s8)bytes;
  printf("%d %d\n", shorts[0], shorts[7]);
  return 0;
}

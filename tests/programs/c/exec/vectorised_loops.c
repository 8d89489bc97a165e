// build: -O3
// exec:
#include <stdint.h>
#include <stdio.h>

enum { N = 257 };
static int a[N], b[N];
static float f[N], g[N];
static double d[N];
static uint8_t bytes[N];
static int16_t shorts[N];
static int64_t longs[N];

int main(void) {
  volatile int one = 1;
  for (int i = 0; i < N; i++) {
    a[i] = i * one - 100;
    b[i] = (i * 7919 * one) % 1000;
    f[i] = (float)i * 0.5f * (float)one;
    bytes[i] = (uint8_t)(i * 3 * one);
    shorts[i] = (int16_t)(i * 300 * one);
    longs[i] = (int64_t)i * i * i * one;
  }
  long dot = 0;
  int least = 1 << 30, most = -least;
  unsigned ones = 0, different = 0;
  for (int i = 0; i < N; i++)
    dot += (long)a[i] * b[i];
  for (int i = 0; i < N; i++) {
    least = a[i] < least ? a[i] : least;
    most = b[i] > most ? b[i] : most;
  }
  for (int i = 0; i < N; i++)
    ones += (unsigned)__builtin_popcount((unsigned)b[i]);
  for (int i = 0; i < N; i++)
    g[i] = f[i] * 2 + (float)b[i];
  for (int i = 0; i < N; i++)
    d[i] = (double)g[i] / 3 - (double)a[i];
  for (int i = 0; i < N; i++)
    different += bytes[i] != (uint8_t)b[i];
  int saturated = 0;
  for (int i = 0; i < N; i++) {
    int sum = shorts[i] + 30000;
    shorts[i] = (int16_t)(sum > 32767 ? 32767 : sum);
    saturated += shorts[i] == 32767;
  }
  int64_t longest = 0;
  for (int i = 0; i < N; i++)
    longest = longs[i] > longest ? longs[i] : longest;
  uint64_t x = 0;
  for (int i = 0; i < N; i++)
    x ^= (uint64_t)longs[i] << (i & 7);
  double total = 0;
  for (int i = 0; i < N; i++)
    total += d[i];
  for (int i = 0; i < N; i++)
    if (a[i] & 1)
      b[i] = -b[i];
  int last = 0;
  for (int i = 0; i < N; i++)
    last = last * 31 + b[i];
  printf("%ld %d %d %u %u %d %ld %lx %.17g %d\n", dot, least, most, ones, different, saturated, longest, x, total, last);
  for (int i = 0; i < N; i += 50)
    printf("%g %a %d\n", g[i], d[i], shorts[i]);
  return 0;
}

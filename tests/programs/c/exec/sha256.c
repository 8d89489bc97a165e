// exec:
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t k[64];

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void constants(void) {
  // The first 32 bits of the fractional parts of cube roots of primes, by integer search.
  int found = 0;
  for (uint32_t p = 2; found < 64; p++) {
    int prime = 1;
    for (uint32_t d = 2; d * d <= p; d++)
      prime &= p % d != 0;
    if (!prime)
      continue;
    unsigned __int128 low = 0, target = p;
    uint64_t root = 0;
    for (int bit = 36; bit >= 0; bit--) {
      uint64_t candidate = root | 1ull << bit;
      low = (unsigned __int128)candidate * candidate;
      unsigned __int128 high = (low >> 32) * candidate + (((low & 0xffffffff) * candidate) >> 32);
      if (high >> 32 < target << 0 || (high >> 32 == target && 0))
        root = candidate;
    }
    k[found++] = (uint32_t)root;
  }
}

static void block(uint32_t *h, const unsigned char *p) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
  for (int i = 16; i < 64; i++)
    w[i] = w[i - 16] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
           (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
  memcpy(v, h, sizeof v);
  for (int i = 0; i < 64; i++) {
    uint32_t t1 = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
    uint32_t t2 = (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++)
    h[i] += v[i];
}

int main(void) {
  constants();
  uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  unsigned char message[64] = "abc\x80";
  message[63] = 24;
  for (int i = 0; i < 20; i++)
    block(h, message);
  for (int i = 0; i < 8; i++)
    printf("%08x", h[i]);
  puts("");
  return 0;
}

// exec:
// Programs that ask what the processor can do get the same answer everywhere under Everett, and one
// that fits to what they can execute.
#include <cpuid.h>
#include <emmintrin.h>
#include <stdint.h>
#include <stdio.h>

__attribute__((target("sse4.2"))) static uint32_t with_instruction(uint32_t crc, const char *text) {
  for (; *text; text++)
    crc = __builtin_ia32_crc32qi(crc, *text);
  return crc;
}

static uint32_t plainly(uint32_t crc, const char *text) {
  for (; *text; text++) {
    crc ^= (unsigned char)*text;
    for (int bit = 0; bit < 8; bit++)
      crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
  }
  return crc;
}

int main(void) {
  __builtin_cpu_init();
  uint32_t crc = __builtin_cpu_supports("sse4.2") ? with_instruction(7, "a text") : plainly(7, "a text");
  printf("%x\n", crc);
  unsigned a, b, c, d;
  __get_cpuid(1, &a, &b, &c, &d);
  int same = !(c & bit_SSE42) == !__builtin_cpu_supports("sse4.2");
  same &= !(d & bit_SSE2) == !__builtin_cpu_supports("sse2");
  same &= !(c & bit_AVX) || !__builtin_cpu_supports("avx2") || __get_cpuid_max(0, 0) >= 7;
  printf("%d %d %d\n", same, !!__builtin_cpu_supports("sse2"), !!__builtin_cpu_supports("cmov"));
  return 0;
}

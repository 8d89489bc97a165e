// build: -O1 -mssse3 -mpclmul
// build: -O0 -mssse3 -mpclmul
// exec:
#include <emmintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void print(__m128i x) {
  uint64_t words[2];
  memcpy(words, &x, sizeof words);
  printf("%016lx%016lx\n", words[1], words[0]);
}

#define TWO(text) \
  do { \
    __m128i r = a; \
    __asm__(text " %1, %0" : "+x"(r) : "x"(b)); \
    print(r); \
  } while (0)

int main(void) {
  __m128i a = _mm_set_epi32(0x10203040, -5, 0x7fffffff, 0x01ff80fe);
  __m128i b = _mm_set_epi32(0x0fffffff, -6, 3, 0x0201fe7f);
  TWO("pxor");
  TWO("pandn");
  TWO("paddb");
  TWO("paddd");
  TWO("psubw");
  TWO("pmullw");
  TWO("pmuludq");
  TWO("pcmpeqb");
  TWO("pcmpgtd");
  TWO("pminub");
  TWO("pmaxsw");
  TWO("punpcklbw");
  TWO("punpckhdq");
  TWO("pshufb");
  TWO("psllq $7, %0; movdqa %0, %0; paddq");
  TWO("psrad $3, %0; por");
  TWO("pslldq $3, %0; pxor");
  TWO("palignr $5,");
  TWO("pshufd $0x1b,");
  TWO("pclmulqdq $0x10,");
  uint32_t signs, lane;
  __asm__("pmovmskb %2, %0; pextrw $3, %2, %1" : "=r"(signs), "=r"(lane) : "x"(a));
  printf("%x %x\n", signs, lane);
  uint64_t low = 0x1122334455667788;
  __m128i r;
  __asm__("movq %1, %0" : "=x"(r) : "r"(low));
  print(r);
  // Registers by name, and memory.
  char text[32] = "0123456789abcdefghijklmnopqrstu", other[32];
  __asm__ volatile("movdqu (%1), %%xmm0; movups 16(%1), %%xmm1\n\t"
                   "movdqu %%xmm1, (%0); movups %%xmm0, 16(%0)"
                   :
                   : "r"(other), "r"(text)
                   : "xmm0", "xmm1", "memory");
  printf("%.31s\n", other);
  double x = 1.5, y = 2.25;
  __asm__("mulsd %1, %0; addsd %1, %0" : "+x"(x) : "x"(y));
  char less, unordered;
  __asm__("ucomisd %3, %2" : "=@cca"(less), "=@ccp"(unordered) : "x"(y), "x"(x) : "cc");
  printf("%g %d %d\n", x, less, unordered);
  return 0;
}

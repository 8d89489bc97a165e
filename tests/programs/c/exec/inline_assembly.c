// exec:
#include <stdint.h>
#include <stdio.h>

static inline uint32_t rotate(uint32_t x, uint8_t by) {
  __asm__("roll %1, %0" : "+r"(x) : "c"(by));
  return x;
}

int main(void) {
  uint32_t swapped = 0x12345678;
  __asm__("bswap %0" : "+r"(swapped));
  printf("%x\n", swapped);
  uint64_t first;
  uint64_t bits = 0x500;
  __asm__("bsfq %1, %0" : "=r"(first) : "r"(bits) : "cc");
  printf("%lu\n", first);
  __asm__("bsrq %1, %0" : "=r"(first) : "r"(bits) : "cc");
  printf("%lu\n", first);
  printf("%x\n", rotate(0x80000001, 4));
  uint64_t low = ~0ull, high = 1;
  __asm__("addq %2, %0\n\tadcq %3, %1" : "+r"(low), "+r"(high) : "r"(2ull), "r"(3ull) : "cc");
  printf("%lx %lx\n", low, high);
  uint64_t product_low, product_high;
  __asm__("mulq %3" : "=a"(product_low), "=d"(product_high) : "a"(0xffffffffffffffffull), "r"(10ull) : "cc");
  printf("%lx %lx\n", product_low, product_high);
  int value = 3;
  __asm__ volatile("" : "+r"(value) : : "memory");
  printf("%d\n", value);
  return 0;
}

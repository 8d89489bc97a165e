// exec:
#include <stdint.h>
#include <stdio.h>

#define THREE(name, type) \
  static type name(type x, type y) { \
    type r; \
    __asm__(#name " %2, %1, %0" : "=r"(r) : "r"(x), "r"(y) : "cc"); \
    return r; \
  }
THREE(pdep, uint64_t)
THREE(pext, uint64_t)
THREE(shlx, uint64_t)
THREE(shrx, uint32_t)
THREE(sarx, int32_t)
THREE(bextr, uint64_t)
THREE(bzhi, uint32_t)
THREE(andn, uint64_t)

static void products(void) {
  uint64_t high, low, x = 0xfedcba9876543210, y = 0x123456789abcdef1;
  __asm__("mulx %2, %0, %1" : "=r"(low), "=r"(high) : "r"(y), "d"(x));
  printf("%lx %lx\n", high, low);
  __asm__("imulq %2" : "=a"(low), "=d"(high) : "r"(y), "0"(x) : "cc");
  printf("%lx %lx\n", high, low);
  int64_t quotient, rest;
  __asm__("cqto; idivq %2" : "=a"(quotient), "=&d"(rest) : "r"(1000l), "0"(-123456789l) : "cc");
  printf("%ld %ld\n", quotient, rest);
  uint16_t both = 1000;
  __asm__("divb %b1" : "+a"(both) : "q"(7) : "cc");
  printf("%x\n", both);
}

static void carries(void) {
  uint64_t a[4] = {~0ul, ~0ul, 5, ~0ul}, b[4] = {1, 2, 3, 4}, carry = 0, word, count = 4, at = 0;
  __asm__ volatile("clc\n"
                   "0:\n\t"
                   "movq (%[a],%[at],8), %[word]\n\t"
                   "adcq (%[b],%[at],8), %[word]\n\t"
                   "movq %[word], (%[a],%[at],8)\n\t"
                   "leaq 1(%[at]), %[at]\n\t"
                   "decq %[count]\n\t"
                   "jnz 0b\n\t"
                   "adcq $0, %[carry]"
                   : [word] "=&r"(word), [at] "+r"(at), [count] "+r"(count), [carry] "+r"(carry)
                   : [a] "r"(a), [b] "r"(b)
                   : "memory", "cc");
  printf("%lx %lx %lx %lx %lx\n", a[0], a[1], a[2], a[3], carry);
  uint64_t x = ~0ul, y = ~0ul, c, o;
  __asm__("xorl %k2, %k2; stc; adcx %3, %0; adox %3, %1; setc %b2; movzbl %b2, %k2"
          : "+r"(x), "+r"(y), "=&q"(c) : "r"(5ul) : "cc");
  __asm__("xorl %k0, %k0; seto %b0" : "=&q"(o) : : "cc");
  printf("%lx %lx %lu %lu\n", x, y, c, o);
}

static void flags(void) {
  int zero, below, above, parity;
  __asm__("cmpl %5, %4" : "=@ccz"(zero), "=@ccb"(below), "=@ccg"(above), "=@ccp"(parity) : "r"(5), "r"(8) : "cc");
  printf("%d %d %d %d\n", zero, below, above, parity);
  uint32_t word;
  __asm__("cmpb $3, %b1; lahf; shrl $8, %0" : "=a"(word) : "d"(2) : "cc");
  printf("%x\n", word & 0xc5);
  uint16_t swapped = 0x1234;
  __asm__("xchgb %b0, %h0" : "+Q"(swapped));
  printf("%x\n", swapped);
  uint32_t crc = ~0u;
  uint64_t wide = 7;
  __asm__("crc32b %b1, %0; crc32l %k1, %0" : "+r"(crc) : "r"(0x12345678));
  __asm__("crc32q %1, %0" : "+r"(wide) : "rm"(0x123456789abcdef0ul));
  printf("%x %lx\n", crc, wide);
  uint32_t memory = 0x01020304, loaded;
  __asm__("movbe %1, %0" : "=r"(loaded) : "m"(memory));
  printf("%x\n", loaded);
  uint64_t r;
  __asm__("blsr %1, %0" : "=r"(r) : "r"(0xf0ul) : "cc");
  printf("%lx ", r);
  __asm__("blsi %1, %0" : "=r"(r) : "r"(0xf0ul) : "cc");
  printf("%lx ", r);
  __asm__("blsmsk %1, %0" : "=r"(r) : "r"(0xf0ul) : "cc");
  printf("%lx ", r);
  __asm__("rorx $12, %1, %0" : "=r"(r) : "r"(0x123456789abcdef0ul));
  printf("%lx\n", r);
  char none;
  __asm__("rep bsfq %2, %0; setc %1" : "=r"(r), "=q"(none) : "r"(0ul) : "cc");
  printf("%lu %d\n", r, none);
}

static int sign(int x) {
  __asm__ goto("testl %0, %0; js %l[negative]; jz %l[nought]" : : "r"(x) : "cc" : negative, nought);
  return 1;
negative:
  return -1;
nought:
  return 0;
}

static int halved(int x, int *half) {
  int result;
  __asm__ goto("movl %1, %0; sarl $1, %0; jc %l[odd]" : "=r"(result) : "r"(x) : "cc" : odd);
  *half = result;
  return 1;
odd:
  *half = -result;
  return 0;
}

int main(void) {
  printf("%lx %lx\n", pdep(0xabcd, 0xf0f0f0f0f0f0f0f0), pext(0x123456789abcdef0, 0xff00ff00ff00ff00));
  printf("%lx %x %x\n", shlx(5, 70), shrx(0x80000000, 33), sarx(0x80000000, 4));
  printf("%lx %x %lx\n", bextr(0x123456789abcdef0, 0x1408), bzhi(0xffffffff, 12), andn(0xff00, 0xffff));
  products();
  carries();
  flags();
  int a, b;
  printf("%d %d %d ", sign(-5), sign(0), sign(9));
  a = 0, b = 0;
  int even = halved(8, &a), odd = halved(9, &b);
  printf("%d %d %d %d\n", even, odd, a, b);
  struct { uint64_t first, second; } pair = {1, 2};
  uint64_t second;
  __asm__("movq %H1, %0" : "=r"(second) : "o"(pair));
  __asm__("incq %0" : "+m"(pair.first));
  __asm__ volatile("jmp .Lover%=\n ud2\n .Lover%=: prefetcht0 %0" : : "m"(pair));
  printf("%lu %lu\n", second, pair.first);
  return 0;
}

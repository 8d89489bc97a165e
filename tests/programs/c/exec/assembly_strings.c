// exec:
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static void *copy(void *to, const void *from, size_t size) {
  void *result = to;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
  return result;
}

static size_t length(const char *text) {
  size_t left = ~(size_t)0;
  __asm__ volatile("repne; scasb" : "+D"(text), "+c"(left) : "a"(0) : "memory", "cc");
  return ~left - 1;
}

int main(void) {
  char text[64] = "a piece of text that is copied by words", other[64] = {0};
  copy(other, text, sizeof text);
  puts(other);
  // Overlapping upwards: the first byte is repeated.
  copy(other + 1, other, 5);
  puts(other);
  printf("%zu %zu\n", length(text), length(""));

  uint64_t words[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  void *to = words + 4;
  const void *from = words;
  size_t count = 3;
  __asm__ volatile("cld; rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
  printf("%lu %lu %lu %lu %ld\n", words[4], words[5], words[6], words[7], (char *)to - (char *)words);
  // Downwards, between ranges that overlap.
  to = words + 7, from = words + 6, count = 7;
  __asm__ volatile("std; rep movsq; cld" : "+D"(to), "+S"(from), "+c"(count) : : "memory", "cc");
  for (int at = 0; at < 8; at++)
    printf("%lu ", words[at]);
  puts("");

  uint16_t shorts[9] = {0};
  to = shorts, count = 7;
  __asm__ volatile("rep stosw" : "+D"(to), "+c"(count) : "a"(0x1234) : "memory");
  to = shorts + 1, count = 1;
  __asm__ volatile("rep stosl" : "+D"(to), "+c"(count) : "a"(0xabcdef01) : "memory");
  for (int at = 0; at < 9; at++)
    printf("%x ", shorts[at]);
  puts("");

  const char *one = "equal until here", *two = "equal until Here";
  count = 17;
  char below, same;
  __asm__ volatile("repe cmpsb; setb %3; sete %4"
                   : "+S"(one), "+D"(two), "+c"(count), "=q"(below), "=q"(same)
                   :
                   : "memory", "cc");
  printf("%s %zu %d %d\n", one, count, below, same);

  uint32_t sum = 0, value;
  from = shorts, count = 4;
  __asm__ volatile("1: lodsl\n\t"
                   "addl %%eax, %0\n\t"
                   "loop 1b"
                   : "+r"(sum), "+S"(from), "+c"(count), "=&a"(value)
                   :
                   : "memory", "cc");
  printf("%x %x\n", sum, value);
  count = 0;
  to = other;
  __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"('x') : "memory");
  printf("%c\n", other[0]);
  return 0;
}

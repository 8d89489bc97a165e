// run:
// paths: 2
#include <everett.h>

int main(void) {
  unsigned char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  everett_make_symbolic(bytes + 2, 3, "middle");
  uint64_t word;
  __builtin_memcpy(&word, bytes, 8);
  if ((word & 0xffffff000000ffff) != 0x0807060000000201)
    return 50;
  if (word == 0x0807060504030201)
    return 1;
  return 0;
}

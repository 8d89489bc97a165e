// build: -O0
// build: -O1
// run:
// Merged paths compute what single ones do: bytes, words, pointers and parts of words that differ are the right ones
// on either way, also where a later region builds on them, and where a term is read with another size.
#include <assert.h>
#include <klee/klee.h>
#include <string.h>

struct Result {
  int cells[4];
  unsigned char pair[2];
  short small;
  int *where;
  long wide;
};

#define BODY(OPEN, CLOSE)                                                                          \
  r->where = r->cells;                                                                             \
  for (int i = 0; i < 2; i++) {                                                                    \
    OPEN;                                                                                          \
    if (x > 40) {                                                                                  \
      r->cells[x & 3] = y + i;                                                                     \
      r->where = &r->cells[1];                                                                     \
    } else if (y == -5) {                                                                          \
      r->small = x * y;                                                                            \
      r->wide = (long)x << 33;                                                                     \
    } else {                                                                                       \
      r->pair[i] = y;                                                                              \
    }                                                                                              \
    CLOSE;                                                                                         \
    OPEN;                                                                                          \
    if (r->pair[0] > r->pair[1])                                                                   \
      memcpy(r->pair, &r->small, 2);                                                               \
    r->wide += *r->where ^ r->small;                                                               \
    CLOSE;                                                                                         \
  }

__attribute__((noinline)) static void merged(struct Result *r, unsigned char x, signed char y) {
  BODY(klee_open_merge(), klee_close_merge())
}

__attribute__((noinline)) static void single(struct Result *r, unsigned char x, signed char y) {
  BODY(, )
}

int main(void) {
  static struct Result one, two;
  unsigned char x;
  signed char y;
  klee_make_symbolic(&x, 1, "x");
  klee_make_symbolic(&y, 1, "y");
  merged(&one, x, y);
  single(&two, x, y);
  assert(!memcmp(one.cells, two.cells, sizeof one.cells));
  assert(!memcmp(one.pair, two.pair, sizeof one.pair));
  assert(one.small == two.small && one.wide == two.wide);
  assert(one.where - one.cells == two.where - two.cells);
  return 0;
}

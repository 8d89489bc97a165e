// build: -O0
// build: -O1 -fno-vectorize -fno-unroll-loops
// run:
// paths: 4 3
// finding: assertion 29
// Twelve bytes that go one of three ways each: half a million paths without merging. Counts, the largest byte and its
// place are merged.
#include <assert.h>
#include <klee/klee.h>

static int count, at;
static unsigned char largest;

int main(void) {
  unsigned char bytes[12];
  klee_make_symbolic(bytes, sizeof bytes, "bytes");
  for (int i = 0; i < 12; i++) {
    klee_open_merge();
    if (bytes[i] > 100)
      count += 1;
    else if (bytes[i] > largest) {
      largest = bytes[i];
      at = i;
    }
    klee_close_merge();
  }
  if (count == 0)
    assert(largest == bytes[at]);
  assert(count != 12 || bytes[3] != 177);
  return 0;
}

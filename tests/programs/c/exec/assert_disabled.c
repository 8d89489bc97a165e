// build: -DNDEBUG
// exec:
#include <assert.h>
#include <stdio.h>

int main(void) {
  int calls = 0;
  assert(calls++ > 100);
  printf("%d\n", calls);
  static_assert(sizeof(long) == 8, "LP64");
  return 0;
}

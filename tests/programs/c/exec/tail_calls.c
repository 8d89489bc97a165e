// build: -O2
// exec:
#include <stdio.h>

static long count_down(long n, long sum);
static long other(long n, long sum) { __attribute__((musttail)) return count_down(n - 1, sum + 1); }
__attribute__((noinline)) static long count_down(long n, long sum) {
  if (n <= 0)
    return sum;
  __attribute__((musttail)) return other(n, sum);
}

int main(void) {
  printf("%ld\n", count_down(1000000, 0));
  return 0;
}

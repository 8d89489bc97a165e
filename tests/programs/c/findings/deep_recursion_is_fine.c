// run:
// exec:
// paths: 1
#include <stdio.h>

static unsigned long sum(unsigned long n) {
  return n == 0 ? 0 : n + sum(n - 1);
}

int main(void) {
  printf("%lu\n", sum(50000));
  return 0;
}

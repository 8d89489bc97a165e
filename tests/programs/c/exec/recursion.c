// exec:
#include <stdio.h>

static int ackermann(int m, int n) {
  return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
static int odd(unsigned n);
static int even(unsigned n) { return n == 0 ? 1 : odd(n - 1); }
static int odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }
static void hanoi(int n, int a, int b, int c, long *hash) {
  if (n == 0)
    return;
  hanoi(n - 1, a, c, b, hash);
  *hash = *hash * 31 + a * 3 + c;
  hanoi(n - 1, b, a, c, hash);
}
static int queens(int n, int row, unsigned columns, unsigned left, unsigned right) {
  int count = 0;
  for (unsigned free = ~(columns | left | right) & ((1u << n) - 1), bit; free; free ^= bit) {
    bit = free & -free;
    count += row + 1 == n ? 1 : queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1);
  }
  return count;
}

int main(void) {
  long hash = 0;
  hanoi(12, 1, 2, 3, &hash);
  printf("%d %d %ld %d\n", ackermann(2, 9), even(1001), hash, queens(7, 0, 0, 0, 0));
  return 0;
}

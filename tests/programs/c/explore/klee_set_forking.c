// run:
// paths: 2
// complete: no
#include <klee/klee.h>
#include <stdio.h>

int main(void) {
  // One path, whichever side it takes; the other one is not explored, and the run says so.
  klee_set_forking(0);
  unsigned bits = (unsigned)klee_int("bits");
  int ones = 0;
  for (int i = 0; i < 8; i++)
    if (bits >> i & 1) {
      ones++;
      puts("a one");
    }
  klee_set_forking(1);
  if (klee_range(0, 2, "side"))
    puts("one side");
  else
    puts("the other side");
  return ones > 8;
}

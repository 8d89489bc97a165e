// run:
// paths: 1
#include <everett.h>

// No branch below depends on the input; blasting alone would take very long to see it.
int main(void) {
  uint64_t a = everett_symbolic_u64("a");
  uint64_t b = everett_symbolic_u64("b");
  uint64_t c = everett_symbolic_u64("c");
  if (a * b != b * a)
    return 1;
  if ((a * b) * c != a * (b * c))
    return 2;
  if (a * (b + c) != a * b + a * c)
    return 3;
  if ((a + b) * (a - b) != a * a - b * b)
    return 4;
  return 0;
}

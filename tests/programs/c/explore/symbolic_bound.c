// run:
// paths: 11
#include <everett.h>

int main(void) {
  unsigned count = everett_symbolic_u32("count");
  everett_assume(count <= 10);
  int sum = 0;
  for (unsigned i = 0; i < count; i++)
    sum += (int)i;
  return sum;
}

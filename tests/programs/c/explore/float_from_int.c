// run:
// paths: 2
#include <everett.h>

int main(void) {
  int n = everett_symbolic_i8("n");
  float half = (float)n / 2.0f;
  if (half == 20.5f)
    return n;
  return 0;
}

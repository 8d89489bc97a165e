// run:
// paths: 3
#include <everett.h>

int main(void) {
  uint32_t x = everett_symbolic_u32("x");
  if (x / 1000 == 777 && x % 1000 == 123)
    return x == 777123 ? 1 : 50;
  return 0;
}

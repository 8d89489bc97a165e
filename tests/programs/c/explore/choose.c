// run:
// paths: 12
#include <everett.h>

int main(void) {
  unsigned a = everett_choose(3, "a");
  unsigned b = everett_choose(4, "b");
  if (everett_is_symbolic(a) || everett_is_symbolic(b))
    return 100;
  return (int)(a * 4 + b);
}

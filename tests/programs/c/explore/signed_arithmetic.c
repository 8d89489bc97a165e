// run:
// paths: 5
#include <everett.h>

int main(void) {
  int8_t a = everett_symbolic_i8("a");
  int wide = a;
  if (wide < -100)
    return (a >> 7) == -1 ? 1 : 50;
  if ((uint8_t)a > 250)
    return 2;
  if (a % 7 == -3 && a < -90)
    return a == -94 ? 3 : 51;
  return 0;
}

// run:
// paths: 4
#include <everett.h>

int main(void) {
  int result = 0;
  for (int i = 0; i < 2; i++)
    if (everett_symbolic_u8("byte") == 'x' + i)
      result += 1 << i;
  return result;
}

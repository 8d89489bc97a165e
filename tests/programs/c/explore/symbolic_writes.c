// run:
// paths: 2
#include <everett.h>

int main(void) {
  unsigned char from = everett_symbolic_u8("from") % 8;
  unsigned char to = everett_symbolic_u8("to") % 8;
  int cells[8] = {0};
  cells[from] = 5;
  cells[to] += 2;
  int sum = 0;
  for (int i = 0; i < 8; i++)
    sum += cells[i];
  if (sum != 7)
    return 100;
  if (cells[3] == 7)
    return from == 3 && to == 3 ? 1 : 101;
  return 0;
}

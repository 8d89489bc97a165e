// run:
// finding: user-report 14
#include <everett.h>

static int grid[4][5];

int main(void) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 5; j++)
      grid[i][j] = i * 10 + j;
  unsigned i = everett_symbolic_u8("i") % 4, j = everett_symbolic_u8("j") % 5;
  grid[i][j] += 100;
  if (grid[i][j] == 132 && grid[3][2] != 32)
    everett_report("3 2"); // here
  return 0;
}

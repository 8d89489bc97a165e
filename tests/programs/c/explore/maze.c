// run:
// args: --sym-stdin 10
// finding: user-report 42
#include <everett.h>
#include <unistd.h>

static char maze[7][8] = {"+-+---+", "| |  #|", "| | --|", "| | | |", "| +-- |", "|     |", "+-----+"};

int main(void) {
  char program[10];
  int x = 1, y = 1;
  if (read(0, program, sizeof program) != sizeof program)
    return 1;
  maze[y][x] = 'X';
  for (unsigned i = 0; i < sizeof program; i++) {
    int ox = x, oy = y;
    switch (program[i]) {
    case 'w':
      y--;
      break;
    case 's':
      y++;
      break;
    case 'a':
      x--;
      break;
    case 'd':
      x++;
      break;
    default:
      return 2;
    }
    if (maze[y][x] == '#')
      return 3;
    if (maze[y][x] != ' ')
      return 4;
    if (ox == x && oy == y)
      return 5;
    maze[y][x] = 'X';
  }
  if (x == 5 && y == 3)
    everett_report("deep in the maze"); // here
  return 0;
}

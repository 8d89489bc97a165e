// run:
// finding: out-of-bounds 7
#include <stdio.h>

int main(void) {
  char room[8];
  sprintf(room, "%d", 12345678); // here
  return room[0] - '1';
}

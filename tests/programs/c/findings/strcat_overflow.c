// run:
// finding: out-of-bounds 8
#include <string.h>

int main(void) {
  char room[8] = "abcd";
  const char *volatile more = "efgh";
  strcat(room, more); // here
  return 0;
}

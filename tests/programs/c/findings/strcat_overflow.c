// run:
// finding: out-of-bounds 9
// not on -O3: out-of-bounds the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <string.h>

int main(void) {
  char room[8] = "abcd";
  const char *volatile more = "efgh";
  strcat(room, more); // here
  return 0;
}

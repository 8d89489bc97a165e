// run:
// finding: out-of-bounds 9
#include <string.h>

int main(void) {
  char room[4];
  const char *volatile text = "abcdef";
  strncpy(room, text, sizeof room);
  return (int)strlen(room); // here
}

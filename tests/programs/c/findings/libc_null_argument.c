// run:
// finding: null-pointer 7
#include <string.h>

int main(void) {
  const char *volatile nothing = 0;
  return (int)strlen(nothing); // here
}

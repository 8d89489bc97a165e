// run:
// finding: null-pointer 8
// not on -O3: null-pointer the call is the last thing that the function does, and leaves no frame of it behind
#include <string.h>

int main(void) {
  const char *volatile nothing = 0;
  return (int)strlen(nothing); // here
}

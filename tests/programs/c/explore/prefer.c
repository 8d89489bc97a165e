// run:
// paths: 1
#include <everett.h>
#include <unistd.h>

// The only test has the preferred value, so that its run natively ends in the same status.
int main(void) {
  unsigned char c = everett_symbolic_u8("c");
  everett_prefer(c == 'A');
  return c;
}

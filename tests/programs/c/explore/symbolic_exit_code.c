// run:
// paths: 1
#include <everett.h>

int main(void) {
  return everett_symbolic_u8("code");
}

// run: --max-paths 5
// complete: no
#include <everett.h>

int main(void) {
  unsigned char bits = everett_symbolic_u8("bits");
  int count = 0;
  for (int i = 0; i < 8; i++)
    if (bits & (1u << i))
      count++;
  return count;
}

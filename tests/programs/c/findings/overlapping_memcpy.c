// run:
// finding: overlapping-copy 8
#include <string.h>

int main(void) {
  char text[16] = "0123456789";
  volatile int shift = 2;
  memcpy(text + shift, text, 8); // here
  return text[0] - '0';
}

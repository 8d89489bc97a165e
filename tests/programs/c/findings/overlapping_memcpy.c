// run:
// finding: overlapping-copy 9
// not on -O3: overlapping-copy the optimiser leaves out an access of which nothing is used, or knows what it gives
#include <string.h>

int main(void) {
  char text[16] = "0123456789";
  volatile int shift = 2;
  memcpy(text + shift, text, 8); // here
  return text[0] - '0';
}

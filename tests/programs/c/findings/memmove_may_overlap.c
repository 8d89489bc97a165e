// run:
// paths: 1
// exec:
#include <stdio.h>
#include <string.h>

int main(void) {
  char text[16] = "0123456789";
  volatile int shift = 2;
  memmove(text + shift, text, 8);
  puts(text);
  return 0;
}

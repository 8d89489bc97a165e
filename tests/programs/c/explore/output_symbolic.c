// run:
// args: --sym-stdin 2
// paths: 1
#include <unistd.h>

int main(void) {
  char bytes[2];
  if (read(0, bytes, 2) != 2)
    return 1;
  bytes[0] ^= bytes[1];
  write(1, bytes, 2);
  return 0;
}

// exec:
// Pipes that keep the boundaries of writes (O_DIRECT).
#include "io_cases.h"

int main(void) {
  int p[2];
  static char block[10000];
  SHOW(pipe2(p, O_DIRECT | O_NONBLOCK | O_CLOEXEC));
  SHOW(fcntl(p[0], F_GETFD));
  SHOW(write(p[1], "one", 3));
  SHOW(write(p[1], "three", 5));
  SHOW(write(p[1], "", 0));
  SHOW(read(p[0], block, 100));
  SHOW(read(p[0], block, 2));
  SHOW(read(p[0], block, 100));
  SHOW(write(p[1], block, 5000));
  SHOW(read(p[0], block, 10000));
  SHOW(read(p[0], block, 10000));
  long count = 0;
  while (write(p[1], "x", 1) == 1)
    count++;
  SHOW(count);
  EVENTS(p[1]);
  SHOW(read(p[0], block, 100));
  EVENTS(p[1]);
  int available;
  ioctl(p[0], FIONREAD, &available);
  SHOW(available);
  return 0;
}

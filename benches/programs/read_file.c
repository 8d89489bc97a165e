// Reads a file in pieces of 4 KiB.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv) {
  static char piece[4096];
  long total = 0, count;
  int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
  if (fd < 0) return 1;
  while ((count = read(fd, piece, sizeof piece)) > 0) total += count;
  printf("%ld\n", total);
  return 0;
}

// exec:
// Transfers between files and buffers that end at unmapped memory: what can be reached is moved.
#include "io_cases.h"
#include <sys/mman.h>
#include <sys/random.h>

#define PAGE 4096

int main(void) {
  char *page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page + PAGE, PAGE);
  char *end = page + PAGE;
  static char text[10000];
  memset(text, 'b', sizeof text);
  int fd = open("/tmp/everett-files-partial", O_CREAT | O_RDWR | O_TRUNC, 0644);
  SHOW(write(fd, text, sizeof text));
  lseek(fd, 0, SEEK_SET);
  SHOW(read(fd, end - 100, 200));
  SHOW(end[-100] + end[-1]);
  SHOW(lseek(fd, 0, SEEK_CUR));
  SHOW(read(fd, end, 200));
  SHOW(lseek(fd, 0, SEEK_CUR));
  SHOW(pread(fd, end - 7, 200, 9998));
  SHOW(pread(fd, end - 7, 200, 9000));
  memset(end - 100, 'w', 100);
  SHOW(pwrite(fd, end - 100, 200, 0));
  SHOW(pwrite(fd, end, 200, 0));
  lseek(fd, 50, SEEK_SET);
  SHOW(write(fd, end - 100, 200));
  SHOW(lseek(fd, 0, SEEK_CUR));
  SHOW(pread(fd, text, 200, 0));
  SHOW(text[149] + text[150]);
  struct iovec half[2] = {{text, 10}, {end - 10, 20}};
  SHOW(readv(fd, half, 2));
  SHOW(writev(fd, half, 2));
  struct iovec none[3] = {{text, 10}, {end, 20}, {text, 10}};
  SHOW(readv(fd, none, 3));
  SHOW(writev(fd, none, 3));
  SHOW(lseek(fd, 0, SEEK_CUR));
  int zero = open("/dev/zero", O_RDWR), null = open("/dev/null", O_WRONLY);
  SHOW(read(zero, end - 100, 200));
  SHOW(read(zero, end, 200));
  SHOW(write(zero, end, 200));
  SHOW(write(null, end - 1, 200));
  int random = open("/dev/urandom", O_RDWR);
  SHOW(read(random, end - 100, 200));
  SHOW(read(random, end, 200));
  SHOW(getrandom(end - 100, 200, 0));
  SHOW(getrandom(end, 200, 0));
  // A pipe moves whole buffers only.
  int pipes[2];
  pipe(pipes);
  SHOW(write(pipes[1], text, 1000));
  SHOW(read(pipes[0], end - 100, 200));
  SHOW(write(pipes[1], end - 100, 200));
  int count = 0;
  ioctl(pipes[0], FIONREAD, &count);
  SHOW(count);
  unlink("/tmp/everett-files-partial");
  return 0;
}

// exec:
// How much goes into a pipe, and what comes out.
#include "io_cases.h"

static char block[1 << 20];

static long fill(int fd, size_t piece) {
  long total = 0, got;
  while ((got = write(fd, block, piece)) > 0)
    total += got;
  return total;
}

static long drain(int fd) {
  long total = 0, got;
  while ((got = read(fd, block, sizeof block)) > 0)
    total += got;
  return total;
}

static int available(int fd) {
  int count = -1;
  ioctl(fd, FIONREAD, &count);
  return count;
}

int main(void) {
  int p[2];
  SHOW(pipe2(p, O_NONBLOCK));
  SHOW(fcntl(p[0], F_GETFL) & (O_ACCMODE | O_NONBLOCK));
  SHOW(fcntl(p[1], F_GETFL) & (O_ACCMODE | O_NONBLOCK));
  SHOW(fcntl(p[0], F_GETPIPE_SZ));
  size_t pieces[] = {1, 3, 100, 1000, 1365, 2048, 3000, 4095, 4096, 4097, 5000, 8192, 10000, 65536, 100000};
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    long total = fill(p[1], pieces[i]);
    printf("pieces of %zu: %ld, available %d, then one byte %ld", pieces[i], total,
           available(p[0]), (long)write(p[1], block, 1));
    printf(", drained %ld\n", drain(p[0]));
  }
  SHOW(read(p[0], block, 10));
  SHOW(read(p[0], block, 0));
  SHOW(write(p[1], block, 0));
  EVENTS(p[0]);
  EVENTS(p[1]);
  fill(p[1], 4096);
  EVENTS(p[0]);
  EVENTS(p[1]);
  SHOW(read(p[0], block, 1));
  EVENTS(p[1]);
  SHOW(write(p[1], block, 1));
  SHOW(read(p[0], block, 4094));
  EVENTS(p[1]);
  SHOW(read(p[0], block, 1));
  EVENTS(p[1]);
  SHOW(write(p[1], block, 5000));
  SHOW(available(p[0]));
  SHOW(available(p[1]));
  SHOW(drain(p[0]));

  SHOW(fcntl(p[0], F_SETPIPE_SZ, 4096));
  SHOW(fill(p[1], 1000));
  SHOW(fill(p[1], 96));
  SHOW(fcntl(p[1], F_SETPIPE_SZ, 10000));
  SHOW(fcntl(p[1], F_GETPIPE_SZ));
  SHOW(fill(p[1], 4096));
  SHOW(fcntl(p[1], F_SETPIPE_SZ, 8192));
  SHOW(fcntl(p[1], F_SETPIPE_SZ, 1));
  SHOW(drain(p[0]));
  SHOW(fcntl(p[1], F_SETPIPE_SZ, 1));
  SHOW(fcntl(p[1], F_SETPIPE_SZ, 0));
  SHOW(fcntl(p[1], F_SETPIPE_SZ, 1 << 20));
  SHOW(fill(p[1], 65536));
  SHOW(drain(p[0]));

  // What is read from the front of a page does not make room behind it.
  SHOW(fcntl(p[1], F_SETPIPE_SZ, 4096));
  SHOW(write(p[1], block, 3000));
  SHOW(read(p[0], block, 2500));
  SHOW(write(p[1], block, 2000));
  SHOW(write(p[1], block, 1000));
  SHOW(drain(p[0]));

  struct iovec parts[3] = {{block, 3}, {block, 0}, {block, 4}};
  memcpy(block, "abcdef", 6);
  SHOW(writev(p[1], parts, 3));
  char out[8] = "", more[8] = "";
  struct iovec to[2] = {{out, 2}, {more, 7}};
  SHOW(readv(p[0], to, 2));
  printf("%s %s\n", out, more);
  SHOW(writev(p[1], parts, -1));
  SHOW(writev(p[1], parts, 1025));
  SHOW(writev(p[1], NULL, 0));
  SHOW(readv(p[0], NULL, 0));
  SHOW(write(p[0], "x", 1));
  SHOW(read(p[1], block, 1));
  SHOW(pread(p[0], block, 1, 0));
  SHOW(pwrite(p[1], block, 1, 0));
  SHOW(lseek(p[0], 0, SEEK_CUR));
  SHOW(ftruncate(p[1], 0));
  SHOW(fsync(p[1]));
  SHOW(fcntl(open("/dev/null", O_RDONLY), F_GETPIPE_SZ));
  SHOW(fcntl(eventfd(0, 0), F_SETPIPE_SZ, 4096));
  SHOW(pipe2(p, 0x40000000));
  SHOW(syscall(SYS_pipe2, NULL, 0));
  struct stat status;
  fstat(p[0], &status);
  printf("%o %ld\n", status.st_mode & S_IFMT, (long)status.st_size);
  return 0;
}

// exec:
// readv, writev, preadv, pwritev and their second versions.
#include "io_cases.h"

static void show_file(int fd) {
  char text[64];
  long got = pread(fd, text, 63, 0);
  text[got < 0 ? 0 : got] = 0;
  for (long i = 0; i < got; i++)
    if (!text[i])
      text[i] = '.';
  printf("file: %s at %ld\n", text, (long)lseek(fd, 0, SEEK_CUR));
}

int main(void) {
  int fd = open("/tmp/everett-vectors", O_RDWR | O_CREAT | O_TRUNC, 0600);
  struct iovec out[3] = {{"one", 3}, {"", 0}, {"three", 5}};
  char a[4] = "", b[8] = "";
  struct iovec in[3] = {{a, 3}, {NULL, 0}, {b, 7}};
  SHOW(writev(fd, out, 3));
  show_file(fd);
  SHOW(pwritev(fd, out, 1, 10));
  show_file(fd);
  SHOW(readv(fd, in, 3));
  printf("%s|%d%s\n", a, b[0], b + 2);
  SHOW(preadv(fd, in, 3, 1));
  printf("%s|%s\n", a, b);
  SHOW(preadv(fd, in, 3, 100));
  SHOW(preadv(fd, in, 3, -1));
  SHOW(pwritev(fd, in, 3, -1));
  SHOW(lseek(fd, 3, SEEK_SET));
  memset(b, 0, sizeof b);
  SHOW(preadv2(fd, in, 3, -1, 0));
  printf("%s|%s\n", a, b);
  SHOW(lseek(fd, 0, SEEK_CUR));
  SHOW(preadv2(fd, in, 3, 0, 0));
  SHOW(pwritev2(fd, out, 1, -1, 0));
  show_file(fd);
  SHOW(pwritev2(fd, out, 1, 2, RWF_APPEND));
  show_file(fd);
  SHOW(lseek(fd, 0, SEEK_SET));
  SHOW(pwritev2(fd, out, 1, -1, RWF_APPEND));
  show_file(fd);
  SHOW(pwritev2(fd, out, 1, 0, RWF_DSYNC | RWF_SYNC));
  show_file(fd);
  SHOW(preadv2(fd, in, 3, 0, 0x40000000));
  SHOW(pwritev2(fd, out, 1, 0, 0x40000000));
  struct iovec large[2] = {{a, (size_t)1 << 62}, {b, (size_t)1 << 63}};
  SHOW(readv(fd, large, 2));
  SHOW(readv(999, in, 3));
  SHOW(readv(fd, in, -1));
  SHOW(readv(fd, NULL, 1));
  int reader = open("/tmp/everett-vectors", O_RDONLY), writer = open("/tmp/everett-vectors", O_WRONLY);
  unlink("/tmp/everett-vectors");
  SHOW(writev(reader, out, 3));
  SHOW(readv(writer, in, 3));

  int p[2];
  pipe(p);
  SHOW(preadv2(p[0], in, 3, -1, RWF_NOWAIT));
  SHOW(writev(p[1], out, 3));
  SHOW(preadv2(p[0], in, 3, -1, RWF_NOWAIT));
  SHOW(preadv2(p[0], in, 3, 0, 0));
  SHOW(pwritev(p[1], out, 3, 0));
  SHOW(pwritev2(p[1], out, 3, -1, 0));
  SHOW(readv(p[0], in, 1));
  SHOW(readv(p[0], in, 3));
  int folder = open("/tmp", O_RDONLY);
  SHOW(readv(folder, in, 3));
  int null = open("/dev/null", O_RDWR);
  SHOW(readv(null, in, 3));
  SHOW(writev(null, out, 3));
  SHOW(writev(open("/dev/full", O_WRONLY), out, 3));
  return 0;
}

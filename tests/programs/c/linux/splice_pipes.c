// exec:
// splice, tee and vmsplice between pipes and files.
#include "io_cases.h"

static char block[200000];
static int available(int fd) {
  int count = -1;
  ioctl(fd, FIONREAD, &count);
  return count;
}
static long drain(int fd) {
  long total = 0, got;
  while (available(fd) > 0 && (got = read(fd, block, sizeof block)) > 0)
    total += got;
  return total;
}

int main(void) {
  int p[2], q[2];
  pipe(p);
  pipe(q);
  int file = open("/tmp/everett-splice", O_RDWR | O_CREAT | O_TRUNC, 0600);
  unlink("/tmp/everett-splice");
  for (int i = 0; i < 100000; i++)
    block[i] = (char)(i % 100);
  write(file, block, 100000);
  loff_t offset = 10, at;

  SHOW(splice(file, &offset, p[1], NULL, 20, 0));
  SHOW(offset);
  SHOW(lseek(file, 0, SEEK_CUR));
  SHOW(read(p[0], block, 100));
  SHOW(block[0]);
  lseek(file, 50, SEEK_SET);
  SHOW(splice(file, NULL, p[1], NULL, 5000, 0));
  SHOW(lseek(file, 0, SEEK_CUR));
  SHOW(splice(file, NULL, p[1], NULL, 100000, 0));
  SHOW(available(p[0]));
  SHOW(splice(file, NULL, p[1], NULL, 1, SPLICE_F_NONBLOCK));
  SHOW(drain(p[0]));
  offset = 99990;
  SHOW(splice(file, &offset, p[1], NULL, 100, 0));
  SHOW(splice(file, &offset, p[1], NULL, 100, 0));
  SHOW(offset);
  SHOW(splice(p[0], NULL, file, &offset, 4, 0));
  SHOW(offset);
  SHOW(lseek(file, 0, SEEK_END));
  SHOW(splice(p[0], NULL, file, NULL, 100, 0));
  SHOW(lseek(file, 0, SEEK_CUR));
  SHOW(splice(p[0], NULL, file, NULL, 100, SPLICE_F_NONBLOCK));
  SHOW(splice(p[0], NULL, file, NULL, 0, 0));

  write(p[1], "hello", 5);
  SHOW(tee(p[0], q[1], 3, 0));
  SHOW(tee(p[0], q[1], 100, 0));
  SHOW(available(p[0]));
  SHOW(available(q[0]));
  SHOW(splice(p[0], NULL, q[1], NULL, 2, 0));
  SHOW(splice(p[0], NULL, q[1], NULL, 100, 0));
  memset(block, 0, 32);
  SHOW(read(q[0], block, 100));
  puts(block);
  SHOW(tee(p[0], q[1], 100, SPLICE_F_NONBLOCK));
  SHOW(tee(p[0], p[1], 100, 0));
  SHOW(splice(p[0], NULL, p[1], NULL, 100, 0));
  SHOW(tee(file, p[1], 100, 0));
  at = 0;
  SHOW(splice(p[0], &at, q[1], NULL, 10, 0));
  SHOW(splice(file, NULL, q[1], &at, 10, 0));
  SHOW(splice(file, NULL, file, NULL, 10, 0));
  SHOW(splice(p[1], NULL, q[1], NULL, 10, 0));
  SHOW(splice(p[0], NULL, q[0], NULL, 10, 0));
  SHOW(splice(p[0], NULL, 999, NULL, 10, 0));
  SHOW(splice(p[0], NULL, q[1], NULL, 10, 0x100));
  at = -1;
  SHOW(splice(file, &at, q[1], NULL, 10, 0));

  struct iovec parts[2] = {{"abc", 3}, {"defg", 4}};
  SHOW(vmsplice(p[1], parts, 2, 0));
  SHOW(available(p[0]));
  char one[4] = "", two[8] = "";
  struct iovec to[2] = {{one, 2}, {two, 3}};
  SHOW(vmsplice(p[0], to, 2, 0));
  printf("%s %s\n", one, two);
  SHOW(available(p[0]));
  SHOW(vmsplice(file, parts, 2, 0));
  SHOW(vmsplice(p[1], parts, 2, 0x100));
  SHOW(drain(p[0]));

  // What is spliced takes a page of its own, so fewer bytes fit.
  offset = 0;
  long pieces = 0;
  while (splice(file, &offset, p[1], NULL, 10, SPLICE_F_NONBLOCK) == 10)
    pieces++;
  SHOW(pieces);
  SHOW(available(p[0]));
  EVENTS(p[1]);
  SHOW(drain(p[0]));

  signal(SIGPIPE, SIG_IGN);
  close(q[0]);
  SHOW(splice(file, &offset, q[1], NULL, 10, 0));
  write(p[1], "x", 1);
  SHOW(splice(p[0], NULL, q[1], NULL, 10, 0));
  close(p[1]);
  SHOW(drain(p[0]));
  pipe(q);
  SHOW(splice(p[0], NULL, q[1], NULL, 10, 0));
  SHOW(tee(p[0], q[1], 10, 0));

  int null = open("/dev/null", O_WRONLY);
  write(q[1], "12345", 5);
  SHOW(splice(q[0], NULL, null, NULL, 100, 0));
  int append = open("/tmp/everett-splice", O_WRONLY | O_CREAT | O_APPEND, 0600);
  unlink("/tmp/everett-splice");
  write(q[1], "12345", 5);
  SHOW(splice(q[0], NULL, append, NULL, 100, 0));
  return 0;
}

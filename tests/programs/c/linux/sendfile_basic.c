// exec:
#include "io_cases.h"
#include <sys/sendfile.h>

static char block[200000];

int main(void) {
  int file = open("/tmp/everett-sendfile", O_RDWR | O_CREAT | O_TRUNC, 0600);
  int copy = open("/tmp/everett-sendfile2", O_RDWR | O_CREAT | O_TRUNC, 0600);
  unlink("/tmp/everett-sendfile");
  unlink("/tmp/everett-sendfile2");
  for (int i = 0; i < 150000; i++)
    block[i] = (char)(i % 101);
  write(file, block, 150000);
  int p[2];
  pipe(p);
  off_t offset = 100;
  SHOW(sendfile(p[1], file, &offset, 50));
  SHOW(offset);
  SHOW(lseek(file, 0, SEEK_CUR));
  SHOW(read(p[0], block, 100));
  SHOW(block[0]);
  SHOW(sendfile(p[1], file, NULL, 50));
  lseek(file, 0, SEEK_SET);
  SHOW(sendfile(p[1], file, NULL, 50));
  SHOW(lseek(file, 0, SEEK_CUR));
  SHOW(read(p[0], block, 100));
  lseek(file, 0, SEEK_SET);
  SHOW(sendfile(copy, file, NULL, 1000000));
  SHOW(lseek(file, 0, SEEK_CUR));
  SHOW(lseek(copy, 0, SEEK_CUR));
  offset = 149990;
  SHOW(sendfile(copy, file, &offset, 100));
  SHOW(sendfile(copy, file, &offset, 100));
  SHOW(lseek(copy, 0, SEEK_END));
  offset = -5;
  SHOW(sendfile(copy, file, &offset, 100));
  SHOW(sendfile(copy, p[0], NULL, 100));
  offset = 0;
  SHOW(sendfile(copy, p[0], &offset, 100));
  SHOW(sendfile(p[0], file, NULL, 100));
  SHOW(sendfile(999, file, NULL, 100));
  SHOW(sendfile(copy, 999, NULL, 100));
  int append = open("/tmp/everett-sendfile", O_WRONLY | O_CREAT | O_APPEND, 0600);
  unlink("/tmp/everett-sendfile");
  SHOW(sendfile(append, file, &offset, 100));
  int readonly = open("/dev/zero", O_RDONLY);
  SHOW(sendfile(readonly, file, &offset, 100));
  SHOW(sendfile(open("/dev/null", O_WRONLY), file, &offset, 100));
  SHOW(offset);

  // A pipe that is full: it waits for the reader, or not.
  offset = 0;
  pid_t child = fork_flushed();
  if (!child) {
    long total = 0, got, sum = 0;
    while (total < 150000 && (got = read(p[0], block, 10000)) > 0) {
      for (long i = 0; i < got; i++)
        sum += block[i];
      total += got;
    }
    printf("child %ld %ld\n", total, sum);
    end_child(0);
  }
  while (offset < 150000)
    if (sendfile(p[1], file, &offset, 150000 - offset) <= 0)
      return 1;
  SHOW(wait_for(child));
  SHOW(offset);
  fcntl(p[1], F_SETFL, O_NONBLOCK);
  offset = 0;
  SHOW(sendfile(p[1], file, &offset, 150000));
  SHOW(offset);
  SHOW(sendfile(p[1], file, &offset, 150000));
  signal(SIGPIPE, SIG_IGN);
  close(p[0]);
  SHOW(sendfile(p[1], file, &offset, 150000));
  SHOW(offset);
  return 0;
}

// exec:
// Times of FIFOs: a write changes them, a read is an access.
#include "files.h"

static struct stat before;

static void show(const char *what) {
  struct stat now;
  stat("fifo", &now);
  printf("%s:%s%s%s\n", what, now.st_atim.tv_sec != before.st_atim.tv_sec || now.st_atim.tv_nsec != before.st_atim.tv_nsec ? " atime" : "",
         now.st_mtim.tv_sec != before.st_mtim.tv_sec || now.st_mtim.tv_nsec != before.st_mtim.tv_nsec ? " mtime" : "",
         now.st_ctim.tv_sec != before.st_ctim.tv_sec || now.st_ctim.tv_nsec != before.st_ctim.tv_nsec ? " ctime" : "");
  before = now;
  usleep(20000);
}

int main(void) {
  start_in("fifo-times");
  mkfifo("fifo", 0600);
  stat("fifo", &before);
  usleep(20000);
  int fd = open("fifo", O_RDWR);
  show("open");
  char byte;
  write(fd, "ab", 2);
  show("write");
  read(fd, &byte, 1);
  show("read");
  write(fd, "c", 1);
  show("write");
  read(fd, &byte, 0);
  show("read nothing");
  close(fd);
  show("close");
  return 0;
}

// exec:
// Times of FIFOs: a write changes them, a read is an access.
#include "files.h"

static struct stat before;

static const char *changed(const char *name, struct timespec one, struct timespec other) {
  return one.tv_sec != other.tv_sec || one.tv_nsec != other.tv_nsec ? name : "";
}

static void show(const char *what) {
  struct stat now;
  stat("fifo", &now);
  printf("%s:%s%s%s\n", what, changed(" atime", now.st_atim, before.st_atim),
         changed(" mtime", now.st_mtim, before.st_mtim), changed(" ctime", now.st_ctim, before.st_ctim));
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

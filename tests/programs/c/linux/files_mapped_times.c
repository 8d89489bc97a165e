// Writes through shared mappings change the times of files, and mmap counts as an access.
// exec:
#include "files.h"
#include <sys/mman.h>

static struct stat before;

static int newer(struct timespec a, struct timespec b) {
  return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static void settle(void) {
  struct timespec time = {0, 20000000};
  stat("file", &before);
  nanosleep(&time, NULL);
}

// Which times have changed since `settle`.
static void show(const char *what) {
  struct stat now;
  stat("file", &now);
  printf("%s:%s%s%s\n", what, newer(now.st_atim, before.st_atim) ? " accessed" : "",
         newer(now.st_mtim, before.st_mtim) ? " modified" : "",
         newer(now.st_ctim, before.st_ctim) ? " changed" : "");
}

static int is_modified(void) {
  struct stat now;
  stat("file", &now);
  return newer(now.st_mtim, before.st_mtim);
}

int main(void) {
  start_in("files-mapped-times");
  make_file("file", "text");
  TRY(truncate("file", 3 * 4096));
  int fd = open("file", O_RDWR);
  settle();
  volatile char *at = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  show("mmap");
  settle();
  int sum = at[0] + at[5000];
  show("a read");
  settle();
  at[1] = 'o';
  show("a write");
  // Once more, if the page was written to the disk in between, as whoever calls sync has it.
  settle();
  at[2] = 'o';
  for (int tries = 0; tries < 50 && is_modified(); tries++) {
    settle();
    at[2] = 'o';
  }
  show("another write to the same page");
  settle();
  at[4096] = 'o';
  show("a write to another page");
  settle();
  TRY(msync((void *)at, 3 * 4096, MS_SYNC));
  show("msync");
  settle();
  at[8192] = 'o';
  TRY(msync((void *)at, 3 * 4096, MS_SYNC));
  show("a write and msync");
  settle();
  at[8192] = 'x';
  show("a write after msync");
  settle();
  IN_CHILD(at[8193] = 'p');
  show("a write of a child to the same page");
  settle();
  volatile char *copy = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  copy[0] = 'x';
  show("a write to a private mapping");
  settle();
  TRY(munmap((void *)at, 3 * 4096));
  show("munmap");
  at = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  settle();
  at[8192] = 'q';
  show("a write after mapping it again");
  settle();
  TRY(pread(fd, (void *)at, 4, 4096));
  show("a call that writes to the mapping");
  return sum == 't' ? 0 : 1;
}

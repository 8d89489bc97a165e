// exec:
// Seals of memory files: which operations they forbid, and when they cannot be added.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x20
#endif

static void say(const char *what, long result) {
  printf("%s: %ld %s\n", what, result, result < 0 ? strerror(errno) : "");
}

static int memory(unsigned flags) {
  int fd = memfd_create("sealed", flags);
  if (ftruncate(fd, 8192)) perror("ftruncate");
  return fd;
}

static void map(const char *what, int fd, int protection, int flags) {
  void *at = mmap(0, 4096, protection, flags, fd, 0);
  printf("%s: %s\n", what, at == MAP_FAILED ? strerror(errno) : "mapped");
  if (at != MAP_FAILED) {
    say("  mprotect", mprotect(at, 4096, PROT_READ | PROT_WRITE));
    munmap(at, 4096);
  }
}

static void use(const char *which, int fd) {
  printf("-- %s: %#x\n", which, fcntl(fd, F_GET_SEALS));
  say("write", pwrite(fd, "x", 1, 0));
  say("write nothing", pwrite(fd, "x", 0, 0));
  say("write across the end", pwrite(fd, "four", 4, 8190));
  say("write past the end", pwrite(fd, "x", 1, 9000));
  say("shrink", ftruncate(fd, 4096));
  say("same size", ftruncate(fd, lseek(fd, 0, SEEK_END)));
  say("grow", ftruncate(fd, 16384));
  say("allocate", fallocate(fd, 0, 0, 32768));
  say("allocate, keep the size", fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 65536));
  say("hole", fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
  say("size", lseek(fd, 0, SEEK_END));
  map("shared, writable", fd, PROT_READ | PROT_WRITE, MAP_SHARED);
  map("shared, readable", fd, PROT_READ, MAP_SHARED);
  map("private, writable", fd, PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static void sealed(const char *which, int seals) {
  int fd = memory(MFD_ALLOW_SEALING);
  say("add", fcntl(fd, F_ADD_SEALS, seals));
  use(which, fd);
  say("add again", fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
  close(fd);
}

int main(void) {
  int fd = memory(0);
  printf("without: %#x\n", fcntl(fd, F_GET_SEALS));
  say("add", fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
  close(fd);
  sealed("none", 0);
  sealed("shrink", F_SEAL_SHRINK);
  sealed("grow", F_SEAL_GROW);
  sealed("write", F_SEAL_WRITE);
  sealed("future write", F_SEAL_FUTURE_WRITE);
  sealed("seal", F_SEAL_SEAL);
  sealed("unknown", 0x40);

  fd = memory(MFD_ALLOW_SEALING);
  char *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  say("write seal with a mapping", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  say("future write seal with a mapping", fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
  shared[0] = 'y';
  say("write through the old mapping", shared[0]);
  mprotect(shared, 4096, PROT_READ);
  say("write seal with a protected mapping", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  munmap(shared, 4096);
  say("write seal", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  close(fd);

  fd = memory(MFD_ALLOW_SEALING);
  shared = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
  say("write seal with a mapping that is read", fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  say("mprotect", mprotect(shared, 4096, PROT_READ | PROT_WRITE));
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  int again = open(path, O_RDONLY);
  say("seal through a descriptor that reads", fcntl(again, F_ADD_SEALS, F_SEAL_GROW));
  int ordinary = open("ordinary", O_RDWR | O_CREAT | O_TRUNC, 0600);
  say("an ordinary file", fcntl(ordinary, F_GET_SEALS));
  say("an ordinary file", fcntl(ordinary, F_ADD_SEALS, F_SEAL_GROW));
  unlink("ordinary");
  return 0;
}

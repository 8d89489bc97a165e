// exec:
// MADV_POPULATE_READ and MADV_POPULATE_WRITE, MAP_SHARED_VALIDATE, and seals of memory files that are mapped.
#include "memory_cases.h"
#include <sys/wait.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif

static void populate(const char *what, char *at, long pages) {
  printf("%s:", what);
  for (int write = 0; write < 2; write++) {
    errno = 0;
    int failed = madvise(at, (size_t)(pages * PAGE), write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    printf(" %s", failed ? error_name(errno) : "done");
  }
  printf("\n");
}

static void *shared(int fd, int protection) { return mmap(0, 2 * PAGE, protection, MAP_SHARED, fd, 0); }

static void seals(void) {
  int fd = memfd_create("seals", MFD_ALLOW_SEALING);
  TELL(ftruncate(fd, 2 * PAGE));
  char *map = shared(fd, RW);
  TELL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  TELL(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE));
  SHOW(fcntl(fd, F_GET_SEALS));
  TELL(mprotect(map, 2 * PAGE, PROT_READ));
  TELL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  TELL(munmap(map + PAGE, PAGE));
  TELL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  // A child has the mapping, too.
  int ends[2];
  pipe(ends);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    close(ends[1]);
    read(ends[0], &byte, 1);
    map[0] = 1;
    _exit(0);
  }
  munmap(map, PAGE);
  TELL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  close(ends[1]);
  waitpid(child, 0, 0);
  // A private mapping does not count.
  char *own = mmap(0, PAGE, RW, MAP_PRIVATE, fd, 0);
  TELL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  TELL(write(fd, "x", 1));
  TELL(shared(fd, RW) == MAP_FAILED ? -1 : 0);
  own[0] = 1;
  // Writes may be forbidden for the future while a mapping writes.
  fd = memfd_create("future", MFD_ALLOW_SEALING);
  ftruncate(fd, 2 * PAGE);
  map = shared(fd, RW);
  TELL(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
  map[0] = 1;
  TELL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  munmap(map, 2 * PAGE);
  char *seen = shared(fd, PROT_READ);
  TELL(mprotect(seen, PAGE, RW));
  TELL(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
  SHOW(fcntl(fd, F_GET_SEALS));
}

int main(void) {
  char *map = map_pages(4);
  populate("memory", map, 4);
  mprotect(map, PAGE, PROT_READ);
  populate("one page is read-only", map, 4);
  mprotect(map, PAGE, PROT_NONE);
  populate("one page has no rights", map, 4);
  munmap(map + 2 * PAGE, PAGE);
  populate("a hole", map + PAGE, 3);
  int fd = memfd_create("file", 0);
  ftruncate(fd, PAGE + 1);
  populate("a file", shared(fd, RW), 2);
  populate("a file that is read", shared(fd, PROT_READ), 2);
  ftruncate(fd, PAGE);
  populate("behind the end of a file", shared(fd, RW), 2);
  populate("behind the end of a copy", mmap(0, 2 * PAGE, RW, MAP_PRIVATE, fd, 0), 2);
  TELL(mmap(0, PAGE, RW, MAP_SHARED_VALIDATE, fd, 0) == MAP_FAILED ? -1 : 0);
  TELL(mmap(0, PAGE, RW, MAP_SHARED_VALIDATE | MAP_POPULATE, fd, 0) == MAP_FAILED ? -1 : 0);
  TELL(mmap(0, PAGE, RW, MAP_SHARED_VALIDATE | 0x800000, fd, 0) == MAP_FAILED ? -1 : 0);
  TELL(mmap(0, PAGE, RW, MAP_SHARED | 0x800000, fd, 0) == MAP_FAILED ? -1 : 0);
  seals();
  return 0;
}

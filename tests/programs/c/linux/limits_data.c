// exec:
// RLIMIT_DATA: private writable memory, also where it becomes writable later; and mlockall with RLIMIT_MEMLOCK.
#include "files.h"
#include <sys/mman.h>
#include <sys/resource.h>

#define MIB ((size_t)1 << 20)

static int limit(int resource, rlim_t soft, rlim_t hard) {
  struct rlimit to = {soft, hard};
  return setrlimit(resource, &to);
}

static void *map(size_t size, int protection, int flags) {
  return mmap(NULL, size, protection, MAP_ANONYMOUS | flags, -1, 0);
}

#define SHOW(call)                                                             \
  do {                                                                         \
    errno = 0;                                                                 \
    void *at_ = (void *)(call);                                                \
    printf("%s: %s\n", #call, at_ == MAP_FAILED ? error_name(errno) : "fine"); \
    fflush(stdout);                                                            \
  } while (0)

int main(void) {
  start_in("limits-data");
  make_file("file", "text");
  int fd = open("file", O_RDWR);
  ftruncate(fd, 64 * MIB);
  TRY(limit(RLIMIT_DATA, 16 * MIB, RLIM_INFINITY));
  SHOW(map(32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE));
  SHOW(map(32 * MIB, PROT_READ, MAP_PRIVATE));
  SHOW(map(32 * MIB, PROT_NONE, MAP_PRIVATE));
  SHOW(map(32 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED));
  SHOW(map(32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE));
  SHOW(mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  SHOW(mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
  char *first = map(8 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE);
  TRY(first == MAP_FAILED);
  char *other = map(12 * MIB, PROT_READ, MAP_PRIVATE);
  TRY(mprotect(other, 12 * MIB, PROT_READ | PROT_WRITE));
  TRY(mprotect(other, 4 * MIB, PROT_READ | PROT_WRITE));
  TRY(mprotect(first, 8 * MIB, PROT_READ));
  TRY(mprotect(other, 8 * MIB, PROT_READ | PROT_WRITE));
  SHOW(mremap(other, 8 * MIB, 20 * MIB, MREMAP_MAYMOVE));
  long end = syscall(SYS_brk, 0);
  TRY(syscall(SYS_brk, end + 16 * MIB) == end);
  TRY(syscall(SYS_brk, end + MIB) == end + (long)MIB);
  void *block = malloc(12 * MIB);
  printf("malloc: %s\n", block ? "fine" : error_name(errno));
  block = malloc(MIB);
  printf("malloc: %s\n", block ? "fine" : error_name(errno));
  free(block);
  TRY(munmap(other, 12 * MIB));
  SHOW(map(10 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE));
  // A soft limit of 0 concerns the program break only.
  TRY(limit(RLIMIT_DATA, 0, RLIM_INFINITY));
  SHOW(map(64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE));
  TRY(syscall(SYS_brk, end + 2 * MIB) == end + (long)MIB);
  TRY(limit(RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY));
  // Locked memory.
  TRY(limit(RLIMIT_MEMLOCK, 1 * MIB, 1 * MIB));
  TRY(setuid(65534));
  TRY(mlockall(MCL_CURRENT));
  TRY(mlockall(MCL_FUTURE));
  SHOW(map(2 * MIB, PROT_READ, MAP_PRIVATE));
  TRY(munlockall());
  SHOW(map(2 * MIB, PROT_READ, MAP_PRIVATE));
  TRY(limit(RLIMIT_MEMLOCK, 0, 0));
  TRY(mlockall(MCL_CURRENT));
  return 0;
}

// The limits of the address space and of locked memory.
// exec:
#include "files.h"
#include <sys/mman.h>
#include <sys/resource.h>

#define MIB ((size_t)1 << 20)

static int limit(int resource, rlim_t bytes) {
  struct rlimit to = {bytes, RLIM_INFINITY};
  return setrlimit(resource, &to);
}

static void *map(size_t size, int protection, int flags) {
  return mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

#define SHOW(call)                                                             \
  do {                                                                         \
    errno = 0;                                                                 \
    void *at_ = (void *)(call);                                                \
    printf("%s: %s\n", #call, at_ == MAP_FAILED ? error_name(errno) : "fine"); \
    fflush(stdout);                                                            \
  } while (0)

int main(void) {
  start_in("memory-limits");
  make_file("file", "text");
  int fd = open("file", O_RDWR);
  ftruncate(fd, 64 * MIB);
  char *first = map(16 * MIB, PROT_READ | PROT_WRITE, 0);
  TRY(limit(RLIMIT_AS, 64 * MIB));
  SHOW(map(64 * MIB, PROT_READ | PROT_WRITE, 0));
  SHOW(map(64 * MIB, PROT_NONE, 0));
  SHOW(map(64 * MIB, PROT_READ, MAP_NORESERVE));
  SHOW(mmap(NULL, 56 * MIB, PROT_READ, MAP_SHARED, fd, 0));
  char *second = map(32 * MIB, PROT_NONE, 0);
  SHOW(second);
  SHOW(map(16 * MIB, PROT_READ, 0));
  SHOW(map(8 * MIB, PROT_READ, 0));
  // What is mapped over takes nothing more.
  SHOW(mmap(second, 32 * MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
  SHOW(mremap(first, 16 * MIB, 32 * MIB, MREMAP_MAYMOVE));
  SHOW(mremap(first, 16 * MIB, 8 * MIB, 0));
  SHOW(mremap(first, 8 * MIB, 12 * MIB, MREMAP_MAYMOVE));
  long end = syscall(SYS_brk, 0);
  TRY(syscall(SYS_brk, end + 32 * MIB) == end);
  TRY(syscall(SYS_brk, end + 4096) == end + 4096);
  void *block = malloc(32 * MIB);
  printf("malloc: %s\n", block ? "fine" : error_name(errno));
  block = malloc(64);
  printf("malloc: %s\n", block ? "fine" : error_name(errno));
  free(block);
  IN_CHILD(SHOW(map(32 * MIB, PROT_READ, 0)));
  TRY(munmap(second, 32 * MIB));
  SHOW(map(24 * MIB, PROT_READ, 0));
  TRY(limit(RLIMIT_AS, RLIM_INFINITY));
  SHOW(map(64 * MIB, PROT_READ, 0));
  // Locked memory.
  struct rlimit few = {32768, 32768};
  TRY(setrlimit(RLIMIT_MEMLOCK, &few));
  TRY(setuid(65534));
  SHOW(map(65536, PROT_READ | PROT_WRITE, MAP_LOCKED));
  SHOW(map(65536, PROT_READ | PROT_WRITE, 0));
  char *locked = map(16384, PROT_READ | PROT_WRITE, MAP_LOCKED);
  TRY(locked != MAP_FAILED);
  SHOW(map(32768, PROT_READ | PROT_WRITE, MAP_LOCKED));
  SHOW(mremap(locked, 16384, 65536, MREMAP_MAYMOVE));
  TRY(munmap(locked, 16384));
  SHOW(map(32768, PROT_READ | PROT_WRITE, MAP_LOCKED));
  return 0;
}

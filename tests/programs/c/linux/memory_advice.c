// exec:
#include "memory_cases.h"
#include <sys/syscall.h>

int main(void) {
  char *map = map_pages(4);
  memset(map, 'x', 4 * PAGE);
  SHOW(madvise(map + PAGE, 2 * PAGE, MADV_DONTNEED));
  printf("%d %d %d %d\n", map[0], map[PAGE], map[3 * PAGE - 1], map[3 * PAGE]);
  map[PAGE] = 'y';
  printf("%c\n", map[PAGE]);
  SHOW(madvise(map, 4 * PAGE, MADV_NORMAL));
  SHOW(madvise(map, 4 * PAGE, MADV_WILLNEED));
  SHOW(madvise(map, 4 * PAGE, MADV_SEQUENTIAL));
  SHOW(madvise(map, 4 * PAGE, MADV_FREE));
  SHOW(madvise(map, PAGE, MADV_DONTFORK));
  SHOW(madvise(map, PAGE, MADV_DOFORK));
  SHOW(madvise(map + 1, PAGE, MADV_NORMAL));
  SHOW(madvise(map, 0, MADV_NORMAL));
  SHOW(madvise(map, PAGE, 77));
  SHOW(madvise(map, PAGE, MADV_REMOVE));
  munmap(map + 2 * PAGE, PAGE);
  // What is mapped is done, and the hole is told of.
  SHOW(madvise(map, 4 * PAGE, MADV_DONTNEED));
  printf("%d %d\n", map[0], map[3 * PAGE]);

  char *shared = mmap(0, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  strcpy(shared, "stays");
  SHOW(madvise(shared, PAGE, MADV_DONTNEED));
  printf("%s\n", shared);
  SHOW(madvise(shared, PAGE, MADV_FREE));
  SHOW(madvise(shared, PAGE, MADV_REMOVE));
  printf("%s|\n", shared);

  map = map_pages(4);
  map[0] = 1;
  map[2 * PAGE] = 1;
  unsigned char vector[4] = {9, 9, 9, 9};
  SHOW(mincore(map, 4 * PAGE, vector));
  printf("%d %d %d %d\n", vector[0] & 1, vector[1] & 1, vector[2] & 1, vector[3] & 1);
  SHOW(mincore(map + 1, PAGE, vector));
  SHOW(mincore(map, PAGE, 0));
  munmap(map + PAGE, PAGE);
  SHOW(mincore(map, 4 * PAGE, vector));
  SHOW(mlock(map, PAGE));
  SHOW(mlock(map + 5, 1));
  SHOW(munlock(map, PAGE));
  SHOW(mlock(map, 4 * PAGE));
  SHOW(munlock(map, 4 * PAGE));
  SHOW(syscall(SYS_mlock2, map, PAGE, 1));
  SHOW(syscall(SYS_mlock2, map, PAGE, 4));
  SHOW(mlockall(0));
  SHOW(mlockall(8));
  SHOW(munlockall());
  SHOW(msync(map, PAGE, MS_SYNC));
  SHOW(msync(map + PAGE, PAGE, MS_SYNC));
  return 0;
}

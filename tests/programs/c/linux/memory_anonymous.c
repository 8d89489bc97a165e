// exec:
#include "memory_cases.h"

int main(void) {
  char *map = map_pages(4);
  printf("aligned %d\n", (uintptr_t)map % PAGE == 0);
  int zeros = 1;
  for (long at = 0; at < 4 * PAGE; at++)
    zeros &= map[at] == 0;
  printf("zeros %d\n", zeros);
  memset(map, 'x', 4 * PAGE);
  // Parts go, the rest stays.
  SHOW(munmap(map + PAGE, PAGE));
  printf("%c %c %c\n", map[0], map[2 * PAGE], map[4 * PAGE - 1]);
  // A hole is filled with zeros.
  char *again = mmap(map + PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0);
  printf("same %d %d\n", again == map + PAGE, again[0]);
  again[5] = 'y';
  // What was there is replaced.
  char *over = mmap(map, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
  printf("same %d %d %d %c\n", over == map, over[0], over[PAGE + 5], map[2 * PAGE]);
  // The start goes, then all of it at once, with what is no more.
  SHOW(munmap(map, PAGE));
  map[PAGE] = 'z';
  SHOW(munmap(map, 4 * PAGE));
  SHOW(munmap(map, 4 * PAGE));
  SHOW(munmap(map + 1, PAGE));
  SHOW(munmap(map, 0));
  SHOW(munmap((void *)(-(long)PAGE), PAGE));

  SHOW(mmap(0, 0, RW, ANON, -1, 0));
  SHOW(mmap(0, PAGE, RW, MAP_ANONYMOUS, -1, 0));
  SHOW(mmap(0, PAGE, RW, ANON, -1, 1));
  SHOW(mmap(0, PAGE, RW, MAP_PRIVATE, 99, 0));
  SHOW(mmap(0, (size_t)-1, RW, ANON, -1, 0));
  SHOW(mmap(0, (size_t)1 << 60, RW, ANON, -1, 0));
  SHOW(mmap((void *)0x123, PAGE, RW, ANON | MAP_FIXED, -1, 0));

  // Flags that only hint.
  TELL(mmap(0, PAGE, RW, ANON | MAP_NORESERVE, -1, 0));
  TELL(mmap(0, PAGE, RW, ANON | MAP_POPULATE, -1, 0));
  TELL(mmap(0, PAGE, RW, ANON | MAP_STACK, -1, 0));
  TELL(mmap(0, PAGE, RW, ANON | MAP_GROWSDOWN, -1, 0));
  TELL(mmap(0, 5000, RW, ANON, -1, 0));
  return 0;
}

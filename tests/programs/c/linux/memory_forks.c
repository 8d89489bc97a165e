// exec:
// What a child gets of memory with MADV_WIPEONFORK and MADV_DONTFORK, and what it does not.
#include "memory_cases.h"

static void seen(const char *what, volatile char *at) {
  printf("%s:", what);
  fflush(stdout);
  CHILD(_exit(at[0]));
}

static void advise(const char *what, char *at, long pages, int advice) {
  errno = 0;
  int failed = madvise(at, (size_t)(pages * PAGE), advice);
  printf("%s: %s\n", what, failed ? error_name(errno) : "done");
}

int main(void) {
  char *map = map_pages(4);
  memset(map, 7, 4 * PAGE);
  advise("wipe", map, 2, MADV_WIPEONFORK);
  advise("drop", map + PAGE, 2, MADV_DONTFORK);
  for (int i = 0; i < 4; i++)
    seen("page", map + i * PAGE);
  printf("%d %d %d\n", map[0], map[PAGE], map[2 * PAGE]);
  // A grandchild: a child that writes to a wiped page has what it wrote, and its child zeros.
  CHILD({
    map[0] = 3;
    seen("grandchild", map);
    _exit(map[0]);
  });
  advise("back", map, 4, MADV_DOFORK);
  seen("wiped and kept", map + PAGE);
  advise("back", map, 4, MADV_KEEPONFORK);
  for (int i = 0; i < 4; i++)
    seen("page", map + i * PAGE);
  // It moves with the pages.
  advise("wipe", map, 2, MADV_WIPEONFORK);
  char *moved = mremap(map, 2 * PAGE, 8 * PAGE, MREMAP_MAYMOVE);
  seen("moved", moved);
  seen("moved along", moved + PAGE);
  munmap(moved, 8 * PAGE);
  // New memory at the same place has none of it.
  char *again = mmap(moved, PAGE, RW, ANON | MAP_FIXED, -1, 0);
  again[0] = 9;
  seen("again", again);
  char *shared = mmap(0, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared[0] = 5;
  advise("wipe shared", shared, 1, MADV_WIPEONFORK);
  advise("drop shared", shared, 1, MADV_DONTFORK);
  seen("shared", shared);
  advise("keep shared", shared, 1, MADV_DOFORK);
  seen("shared", shared);
  int fd = new_file("/tmp/everett-memory-forks", "x", PAGE);
  char *file = mmap(0, PAGE, RW, MAP_PRIVATE, fd, 0);
  advise("wipe a file", file, 1, MADV_WIPEONFORK);
  advise("drop a file", file, 1, MADV_DONTFORK);
  seen("file", file);
  unlink("/tmp/everett-memory-forks");
  return 0;
}

// exec:
#include "memory_cases.h"

int main(void) {
  char *map = map_pages(2);
  strcpy(map, "first");
  strcpy(map + PAGE, "second");
  // Smaller, and larger again in place where it was.
  SHOW(mremap(map, 2 * PAGE, PAGE, 0) == map);
  SHOW(mremap(map, PAGE, 2 * PAGE, 0) == map);
  printf("%s|%s|\n", map, map + PAGE);
  strcpy(map + PAGE, "again");
  // Much larger: it may move.
  char *large = mremap(map, 2 * PAGE, 1000 * PAGE, MREMAP_MAYMOVE);
  printf("%s %s %d\n", large, large + PAGE, large[999 * PAGE]);
  large[999 * PAGE] = 'e';
  // To an address.
  char *room = mmap(0, 16 * PAGE, PROT_NONE, ANON, -1, 0);
  char *there = mremap(large, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room + 4 * PAGE);
  printf("%d %s %s %d\n", there == room + 4 * PAGE, there, there + PAGE, there[2 * PAGE]);
  SHOW(munmap(large + 2 * PAGE, 998 * PAGE));
  // Parts of mappings.
  char *part = mremap(there + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room);
  printf("%d %s\n", part == room, part);
  printf("%s\n", there);
  TELL(mremap(map + 1, PAGE, PAGE, 0));
  TELL(mremap(there, PAGE, 0, 0));
  TELL(mremap(there, PAGE, 2 * PAGE, MREMAP_FIXED, room));
  TELL(mremap(there, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, there));
  TELL(mremap(there, PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room + 1));
  TELL(mremap(there, PAGE, PAGE, 0x100));
  char *gone = map_pages(1);
  munmap(gone, PAGE);
  TELL(mremap(gone, PAGE, 2 * PAGE, MREMAP_MAYMOVE));
  // Without leave to move, next to a neighbour.
  char *two = map_pages(2);
  mprotect(two + PAGE, PAGE, PROT_READ);
  TELL(mremap(two, PAGE, 2 * PAGE, 0));
  // Protection moves along.
  char *moved = mremap(two + PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, room + 8 * PAGE);
  int pipes[2];
  pipe(pipes);
  write(pipes[1], "x", 1);
  SHOW(read(pipes[0], moved, 1));
  // Shared pages once more.
  char *shared = mmap(0, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  strcpy(shared + PAGE, "shared");
  char *twin = mremap(shared, 0, 2 * PAGE, MREMAP_MAYMOVE);
  printf("%d %s\n", twin != shared, twin + PAGE);
  strcpy(twin, "twin");
  printf("%s\n", shared);
  char *grown = mremap(shared, 2 * PAGE, PAGE, 0);
  printf("%s\n", grown);
  TELL(mremap(map_pages(1), 0, PAGE, MREMAP_MAYMOVE));
  // A file's pages move, too.
  const char *name = "/tmp/everett_memory_remap";
  int fd = new_file(name, "page 0", 3 * PAGE);
  pwrite(fd, "page 1", 6, PAGE);
  char *file = mmap(0, PAGE, RW, MAP_SHARED, fd, 0);
  file = mremap(file, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
  printf("%s %s\n", file, file + PAGE);
  strcpy(file + PAGE, "changed");
  char back[8] = "";
  pread(fd, back, 7, PAGE);
  printf("%s\n", back);
  unlink(name);
  return 0;
}

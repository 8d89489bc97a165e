// exec:
#include "memory_cases.h"

static char *map;

static void read_at(long at) { *(volatile char *)(map + at); }
static void write_at(long at) { *(volatile char *)(map + at) = 'w'; }

int main(void) {
  map = map_pages(4);
  memset(map, 'x', 4 * PAGE);
  SHOW(mprotect(map + PAGE, PAGE, PROT_READ));
  SHOW(mprotect(map + 2 * PAGE, PAGE, PROT_NONE));
  printf("%c %c %c\n", map[0], map[PAGE], map[3 * PAGE]);
  // The kernel keeps to it as well.
  int pipes[2];
  if (pipe(pipes))
    return 1;
  SHOW(write(pipes[1], map + PAGE, 5));
  SHOW(read(pipes[0], map + PAGE, 5));
  SHOW(write(pipes[1], map + 2 * PAGE, 5));
  SHOW(read(pipes[0], map + 3 * PAGE, 5));
  // And back: what was there is still there.
  SHOW(mprotect(map + PAGE, 2 * PAGE, RW));
  map[PAGE] = 'y';
  printf("%c %c\n", map[PAGE], map[2 * PAGE]);
  SHOW(mprotect(map + 1, PAGE, RW));
  SHOW(mprotect(map, 0, RW));
  SHOW(mprotect(map, PAGE, 0x100));
  munmap(map + 2 * PAGE, PAGE);
  SHOW(mprotect(map, 4 * PAGE, PROT_READ));
  SHOW(write(pipes[1], "1", 1));
  SHOW(read(pipes[0], map, 1));
  SHOW(mprotect(map + 2 * PAGE, PAGE, PROT_READ));
  SHOW(mprotect(map + 3 * PAGE, PAGE, RW));
  map[3 * PAGE] = 'z';
  // Guards at both ends.
  char *guarded = mmap(0, 4 * PAGE, PROT_NONE, ANON, -1, 0);
  SHOW(mprotect(guarded + PAGE, 2 * PAGE, RW));
  memset(guarded + PAGE, 'g', 2 * PAGE);
  printf("%c\n", guarded[3 * PAGE - 1]);
  SHOW(write(pipes[1], guarded + PAGE, PAGE));
  SHOW(write(pipes[1], guarded, 1));
  // Pages of the heap that begin at a page.
  char *heap = aligned_alloc(PAGE, 2 * PAGE);
  strcpy(heap, "heap");
  SHOW(mprotect(heap, PAGE, PROT_READ));
  SHOW(read(pipes[0], heap, 1));
  printf("%s\n", heap);
  SHOW(mprotect(heap, PAGE, RW));
  strcpy(heap, "written");
  printf("%s\n", heap);
  free(heap);
  (void)read_at;
  (void)write_at;
  return 0;
}

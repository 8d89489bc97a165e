// exec:
// Addresses that were unmapped are available again, as often as a program reserves them.
#include <stdio.h>
#include <sys/mman.h>

#define TIB ((size_t)1 << 40)

static char *reserve(size_t size) {
  return mmap(0, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

int main(void) {
  int done = 0;
  for (int round = 0; round < 200; round++) {
    char *room = reserve(TIB);
    done += room != MAP_FAILED && munmap(room, TIB) == 0;
  }
  printf("one after the other: %d\n", done);
  // Between reservations that stay, too.
  char *first = reserve(8 * TIB), *between = reserve(2 * TIB), *last = reserve(8 * TIB);
  printf("three: %d\n", first != MAP_FAILED && between != MAP_FAILED && last != MAP_FAILED);
  munmap(between, 2 * TIB);
  for (done = 0; done < 50; done++) {
    between = reserve(2 * TIB);
    if (between == MAP_FAILED || munmap(between, 2 * TIB) != 0)
      break;
  }
  printf("between two: %d\n", done);
  // What stays is where it was.
  printf("unmapped: %d %d\n", munmap(first, 8 * TIB), munmap(last, 8 * TIB));
  return 0;
}

// exec:
#include "memory_cases.h"

#define GIB (1L << 30)

int main(void) {
  // Allocators reserve far more than they use.
  char *room = mmap(0, 64 * GIB, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
  printf("%d\n", room != MAP_FAILED);
  for (long at = 0; at < 64 * GIB; at += 9 * GIB) {
    SHOW(mprotect(room + at, PAGE, RW));
    room[at] = (char)(at / GIB);
  }
  for (long at = 0; at < 64 * GIB; at += 9 * GIB)
    printf("%d ", room[at]);
  printf("\n");
  // The usual way to aligned memory: too much, then both ends away.
  char *raw = mmap(0, 4L << 20, RW, ANON, -1, 0);
  char *aligned = (char *)(((uintptr_t)raw + (2L << 20) - 1) & ~((2L << 20) - 1));
  if (aligned > raw)
    munmap(raw, (size_t)(aligned - raw));
  munmap(aligned + (2L << 20), (size_t)(raw + (2L << 20) - aligned));
  aligned[0] = 1;
  aligned[(2L << 20) - 1] = 2;
  printf("%d %d\n", aligned[0], aligned[(2L << 20) - 1]);
  // Large memory is used here and there.
  char *large = mmap(0, 2 * GIB, RW, ANON | MAP_NORESERVE, -1, 0);
  printf("%d\n", large != MAP_FAILED);
  for (long at = 0; at < 2 * GIB; at += 100L << 20)
    large[at] = 'l';
  long sum = 0;
  for (long at = 0; at < 2 * GIB; at += 50L << 20)
    sum += large[at];
  printf("%ld\n", sum);
  SHOW(munmap(large + GIB / 2, GIB));
  printf("%c\n", large[19 * (100L << 20)]);
  // A file that is mapped in pieces.
  const char *name = "/tmp/everett_memory_sparse";
  int fd = new_file(name, "", 64L << 20);
  char *file = mmap(0, 64L << 20, RW, MAP_SHARED, fd, 0);
  file[0] = 'a';
  file[(64L << 20) - 1] = 'z';
  char *piece = mmap(0, PAGE, PROT_READ, MAP_SHARED, fd, (64L << 20) - PAGE);
  printf("%c\n", piece[PAGE - 1]);
  unlink(name);
  return 0;
}

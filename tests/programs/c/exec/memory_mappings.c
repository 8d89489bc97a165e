// exec:
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
  long page = sysconf(_SC_PAGESIZE);
  char *map = mmap(NULL, (size_t)page * 3, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED)
    return 1;
  int zero = 1;
  for (long i = 0; i < page * 3; i += 100)
    zero &= map[i] == 0;
  strcpy(map + page - 2, "across");
  printf("%ld %d %s\n", page, zero, map + page - 2);
  printf("%d\n", munmap(map, (size_t)page * 3));
  return 0;
}

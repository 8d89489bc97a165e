// run:
// paths: 2
// finding: use-after-free 14
#include <everett.h>
#include <sys/mman.h>

int main(void) {
  char *map = mmap(0, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  map[4096] = 1;
  munmap(map + 4096, 4096);
  map[0] = 1;
  map[2 * 4096] = 1;
  if (everett_symbolic_u8("x") == 7)
    return map[4096]; // here
  return 0;
}

// run:
// paths: 2
// finding: read-only-write 14
#include <everett.h>
#include <string.h>
#include <sys/mman.h>

int main(void) {
  char *map = mmap(0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  strcpy(map, "text");
  mprotect(map, 4096, PROT_READ);
  unsigned where = everett_symbolic_u8("where");
  everett_assume(where < 2);
  map[where * 4096] = 'x'; // here
  return map[0] != 't';
}

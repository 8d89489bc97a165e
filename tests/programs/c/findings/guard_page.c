// run:
// finding: protected-page 13
#include <everett.h>
#include <sys/mman.h>

int main(void) {
  // Memory between two pages that must not be touched.
  char *map = mmap(0, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(map + 4096, 4096, PROT_READ | PROT_WRITE);
  unsigned length = everett_symbolic_u8("length");
  char *end = map + 2 * 4096 - 200;
  for (unsigned i = 0; i < length; i++)
    end[i] = 1; // here
  return 0;
}

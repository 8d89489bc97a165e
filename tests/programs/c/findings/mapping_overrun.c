// run:
// finding: out-of-bounds 10
#include <everett.h>
#include <sys/mman.h>

int main(void) {
  char *shared = mmap(0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  unsigned index = everett_symbolic_u32("index");
  everett_assume(index >= 2 * 4096 - 3 && index <= 2 * 4096);
  shared[index] = 1; // here
  return 0;
}

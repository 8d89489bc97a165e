// run:
// finding: use-after-free 12
#include <everett.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
  char *map = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  map[1] = 1;
  munmap(map, 4096);
  return map[1]; // here
}

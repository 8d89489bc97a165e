// run:
// paths: 2
// finding: beyond-file 19
#include <everett.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
  int fd = open("/tmp/short", O_RDWR | O_CREAT | O_TRUNC, 0600);
  if (fd < 0 || write(fd, "short", 5) != 5)
    return 1;
  // The mapping is longer than the file: its last page can be used, no other.
  char *map = mmap(0, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  map[4095] = 1;
  unsigned page = everett_symbolic_u8("page");
  everett_assume(page < 2);
  if (page == 1)
    map[4096] = 1; // here
  return 0;
}

// exec:
#include "memory_cases.h"

// The same pages twice, one after the other: what runs over the end goes on at the start.
int main(void) {
  const char *name = "/tmp/everett_memory_ring";
  int fd = new_file(name, "", 2 * PAGE);
  char *room = mmap(0, 4 * PAGE, PROT_NONE, ANON, -1, 0);
  char *one = mmap(room, 2 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0);
  char *two = mmap(room + 2 * PAGE, 2 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0);
  printf("%d %d\n", one == room, two == room + 2 * PAGE);
  strcpy(one + 2 * PAGE - 4, "around the end");
  printf("%s|%.4s\n", one, one + 2 * PAGE - 4);
  memmove(one + PAGE, one, 10);
  printf("%s\n", two + PAGE);
  char back[16] = "";
  pread(fd, back, 10, 0);
  printf("%s\n", back);
  // Pages in another order.
  char *swapped = mmap(0, 2 * PAGE, PROT_NONE, ANON, -1, 0);
  mmap(swapped, PAGE, RW, MAP_SHARED | MAP_FIXED, fd, PAGE);
  mmap(swapped + PAGE, PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0);
  printf("%s|%s\n", swapped, swapped + PAGE);
  swapped[0] = 'A';
  printf("%s %s\n", one + PAGE, two + PAGE);
  unlink(name);
  return 0;
}

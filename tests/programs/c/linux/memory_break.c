// exec:
#include "memory_cases.h"
#include <sys/syscall.h>

static char *brk_to(char *address) { return (char *)syscall(SYS_brk, address); }

int main(void) {
  char *start = brk_to(0);
  start = brk_to((char *)(((uintptr_t)start + PAGE - 1) & ~(uintptr_t)(PAGE - 1)));
  // More than any bound that one could think of.
  char *end = start + (100L << 20);
  printf("%d\n", brk_to(end) == end);
  printf("%d %d\n", start[0], end[-1]);
  start[0] = 'a';
  end[-1] = 'z';
  printf("%d\n", brk_to(start + 10) == start + 10);
  printf("%c\n", start[0]);
  printf("%d\n", brk_to(start + 3 * PAGE) == start + 3 * PAGE);
  printf("%d\n", start[PAGE]);
  memset(start, 'b', 3 * PAGE);
  // Below the start nothing happens.
  printf("%d\n", brk_to((char *)4096) == start + 3 * PAGE);
  printf("%d\n", brk_to((char *)-1) == start + 3 * PAGE);
  // A child has its own.
  fflush(stdout);
  if (fork() == 0) {
    printf("%d\n", brk_to(start) == start);
    fflush(stdout);
    _exit(0);
  }
  wait(0);
  printf("%c %d\n", start[2 * PAGE], brk_to(0) == start + 3 * PAGE);
  printf("%d\n", brk_to(start) == start);
  return 0;
}

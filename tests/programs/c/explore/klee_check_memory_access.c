// run:
// finding: out-of-bounds 7
#include <klee/klee.h>

int main(void) {
  char room[20];
  klee_check_memory_access(room, 21); // here
  return 0;
}

// run:
// paths: 3
#include <everett.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

// Symbolic bytes keep their meaning in memory that processes share.
int main(void) {
  unsigned char *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  shared[100] = everett_symbolic_u8("x");
  pid_t child = fork();
  if (child == 0) {
    shared[200] = shared[100] + 1;
    _exit(0);
  }
  waitpid(child, 0, 0);
  if (shared[200] == 0)
    return 1;
  if (shared[200] == 100)
    return 2;
  return 0;
}

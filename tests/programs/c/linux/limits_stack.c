// exec:
// RLIMIT_STACK: the stack of the first thread may grow as far as the limit says, also after it was raised.
#include "files.h"
#include <sys/resource.h>

static __attribute__((noinline)) int deep(int calls) {
  volatile char block[1000];
  block[0] = 1;
  int below = calls > 0 ? deep(calls - 1) : 0;
  return block[0] + below;
}

static void with(long kib, int calls) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit limit = {kib < 0 ? RLIM_INFINITY : kib * 1024, RLIM_INFINITY};
    if (setrlimit(RLIMIT_STACK, &limit) < 0) _exit(9);
    _exit(deep(calls) == calls + 1 ? 3 : 4);
  }
  int status;
  waitpid(child, &status, 0);
  printf("%ld KiB, %d calls: %d %d\n", kib, calls, WIFEXITED(status), WEXITSTATUS(status));
}

int main(void) {
  with(8192, 1000);
  with(65536, 30000);
  with(-1, 20000);
  return 0;
}

// run: --scheduler bounded:1 --preempt memory
// finding: assertion 19
// not on -O3: assertion one instruction reads and writes, and native threads take turns between instructions
#include <assert.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  int *counter = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (fork() == 0) {
    (*counter)++;
    _exit(0);
  }
  (*counter)++;
  wait(0);
  // Two processes, one memory: an update is lost where both read before either writes.
  int sum = *counter;
  assert(sum == 2);
  return 0;
}

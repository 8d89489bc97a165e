// run:
// paths: 1
// The time-stamp counter goes with the virtual clock, natively too: what a program does by it can be replayed.
#include <assert.h>
#include <stdint.h>
#include <unistd.h>
#include <x86intrin.h>

static uint64_t counter(void) {
  uint32_t low, high;
  __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
  return (uint64_t)high << 32 | low;
}

int main(void) {
  uint64_t before = counter();
  usleep(1000);
  uint64_t after = __rdtsc();
  assert(after - before >= 1000000 && after - before < 1100000);
  // It goes on while other threads or processes run.
  int ends[2];
  char byte = 0;
  assert(pipe(ends) == 0);
  if (fork() == 0) {
    usleep(1000);
    return write(ends[1], &byte, 1) != 1;
  }
  assert(read(ends[0], &byte, 1) == 1);
  assert(counter() - after >= 1000000 && counter() - after < 1100000);
  return 0;
}

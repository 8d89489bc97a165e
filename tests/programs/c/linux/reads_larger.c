// exec:
// Counts beyond what a counter or a timer returns need no room, and what memory files with seals refuse.
#include "files.h"
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

int main(void) {
  // A read returns eight bytes, whatever its count is.
  uint64_t count = 5;
  int counter = eventfd(5, 0);
  TRY(read(counter, &count, 9));
  TRY(count);
  int timer = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec soon = {{0, 0}, {0, 1}};
  TRY(timerfd_settime(timer, 0, &soon, NULL));
  TRY(read(timer, &count, 64));
  TRY(count);
  // What has no room for more.
  int pipes[2], ends[2];
  TRY(pipe(pipes));
  TRY(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
  TRY(fallocate(counter, 0, 0, 1));
  TRY(fallocate(timer, 0, 0, 1));
  TRY(fallocate(pipes[1], 0, 0, 1));
  TRY(fallocate(ends[0], 0, 0, 1));
  char text[8];
  TRY(getrandom(text, 8, GRND_RANDOM));
  TRY(getrandom(text, 8, 4));
  TRY(getrandom(text, 8, 4 | GRND_RANDOM));
  // A memory file that must not grow.
  static char page[3 * 4096];
  int fixed = memfd_create("fixed", MFD_ALLOW_SEALING);
  TRY(ftruncate(fixed, 5000));
  TRY(fcntl(fixed, F_ADD_SEALS, F_SEAL_GROW));
  TRY(pwrite(fixed, page, 10, 4990));
  TRY(pwrite(fixed, page, 10, 4995));
  TRY(pwrite(fixed, page, 10, 5000));
  TRY(pwrite(fixed, page, sizeof page, 0));
  TRY(pwrite(fixed, page, 0, 9000));
  TRY(lseek(fixed, 0, SEEK_END));
  // One that must not change.
  int constant = memfd_create("constant", MFD_ALLOW_SEALING);
  TRY(ftruncate(constant, 4096));
  TRY(fcntl(constant, F_ADD_SEALS, F_SEAL_WRITE));
  TRY(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, constant, 0) == MAP_FAILED ? -1 : 0);
  TRY(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, constant, 0) == MAP_FAILED ? -1 : 0);
  void *seen = mmap(NULL, 4096, PROT_READ, MAP_SHARED, constant, 0);
  TRY(seen == MAP_FAILED ? -1 : 0);
  TRY(mprotect(seen, 4096, PROT_READ | PROT_WRITE));
  return 0;
}

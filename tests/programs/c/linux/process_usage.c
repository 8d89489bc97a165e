// exec:
// getrusage and wait4 tell plausible numbers of memory, page faults and waits.
#include "files.h"
#include <sys/resource.h>

#define MIB (1 << 20)

static long most(int who) {
  struct rusage used;
  memset(&used, 0x55, sizeof used);
  TRY(getrusage(who, &used));
  return used.ru_maxrss;
}

static void use(size_t size) {
  volatile char *block = malloc(size);
  for (size_t i = 0; i < size; i += 4096) block[i] = 1;
  free((void *)block);
}

int main(void) {
  long first = most(RUSAGE_SELF);
  printf("%d %d\n", first > 100, first < 100000);
  printf("children %ld\n", most(RUSAGE_CHILDREN));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    use(20 * MIB);
    _exit(3);
  }
  int status;
  struct rusage used;
  TRY(wait4(child, &status, 0, &used) == child);
  printf("%d %d %d\n", WEXITSTATUS(status), used.ru_maxrss > 20000, used.ru_maxrss < 60000);
  printf("%d\n", used.ru_maxrss == most(RUSAGE_CHILDREN));
  use(40 * MIB);
  long peak = most(RUSAGE_SELF);
  printf("%d %d\n", peak > 40000, most(RUSAGE_THREAD) == peak);
  usleep(1000);
  getrusage(RUSAGE_SELF, &used);
  printf("%d %d %ld %ld\n", used.ru_minflt > 0, used.ru_nvcsw > 0, used.ru_nswap, used.ru_isrss);
  return 0;
}

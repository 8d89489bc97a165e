// exec:
// A process has at most vm.max_map_count mappings: what would divide one more is refused, what does not is possible.
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static const char *result(int failed) {
  return !failed ? "done" : errno == ENOMEM ? "ENOMEM" : "another error";
}

int main(void) {
  // Usually 65,530.
  int most = 0;
  FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
  if (!file || fscanf(file, "%d", &most) != 1)
    return 1;
  fclose(file);
  const int PAGES = most + 14470;
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char *all = mmap(0, (size_t)PAGES * PAGE, PROT_NONE, flags, -1, 0);
  if (all == MAP_FAILED)
    return 1;
  int at = 1;
  // Each page makes two more: its own, and what is behind it.
  while (at < PAGES && mprotect(all + (size_t)at * PAGE, PAGE, PROT_READ) == 0)
    at += 2;
  printf("%s, %s many\n", result(1), at > most - 530 && at < most + 10 ? "as" : "not as");
  printf("the same again: %s\n", result(mprotect(all + PAGE, PAGE, PROT_READ)));
  printf("joined: %s\n", result(mprotect(all + (size_t)(at - 2) * PAGE, PAGE, PROT_NONE)));
  printf("divided: %s\n", result(mprotect(all + (size_t)(at - 2) * PAGE, PAGE, PROT_READ)));
  printf("its end: %s\n", result(munmap(all + (size_t)(PAGES - 1) * PAGE, PAGE)));
  printf("all: %s\n", result(munmap(all, (size_t)PAGES * PAGE)));
  void *one = mmap(0, PAGE, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  printf("another: %s\n", result(one == MAP_FAILED));
  return 0;
}

// exec:
// When a file was made, as statx tells if it is asked; where the kernel has made the file, nobody knows.
#include "files.h"
#include <sys/eventfd.h>
#include <sys/stat.h>

static long long made(const char *path, int flags, unsigned mask) {
  struct statx status;
  memset(&status, 0x55, sizeof status);
  TRY(statx(AT_FDCWD, path, flags, mask, &status));
  int is_known = (status.stx_mask & STATX_BTIME) != 0;
  printf("%s birth %d set %d basic %d\n", path, is_known, status.stx_btime.tv_sec != 0,
         (status.stx_mask & STATX_TYPE) != 0);
  return status.stx_btime.tv_sec * 1000000000ll + status.stx_btime.tv_nsec;
}

int main(void) {
  start_in("birth");
  make_file("file", "text");
  long long first = made("file", 0, STATX_ALL);
  usleep(50000);
  make_file("second", "text");
  make_file("file", "other");
  printf("same %d\n", made("file", 0, STATX_ALL) == first);
  rename("file", "third");
  printf("same %d\n", made("third", 0, STATX_BTIME) == first);
  printf("later %d\n", made("second", 0, STATX_ALL) > first);
  made("third", 0, STATX_BASIC_STATS);
  symlink("third", "link");
  made("link", AT_SYMLINK_NOFOLLOW, STATX_ALL);
  made(".", 0, STATX_ALL);
  made("/proc/self/stat", 0, STATX_ALL);
  made("/proc", 0, STATX_ALL);
  struct statx status;
  TRY(statx(eventfd(0, 0), "", AT_EMPTY_PATH, STATX_ALL, &status));
  printf("%d\n", (status.stx_mask & STATX_BTIME) != 0);
  TRY(statx(AT_FDCWD, ".", 1, STATX_ALL, &status));
  TRY(statx(AT_FDCWD, ".", 0x6000, STATX_ALL, &status));
  TRY(statx(AT_FDCWD, ".", 0, 0x80000000u, &status));
  return 0;
}

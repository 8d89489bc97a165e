// A file has its own times, old ones or future ones, the same for all who ask; what it changes has its own.
// run: --sym-file-times
// args: --sym-files 2 3
// paths: 3
#include <assert.h>
#include <everett.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int main(void) {
  struct stat one, other, made;
  time_t now = time(NULL);
  int fd = open("A", O_RDWR);
  if (fd < 0 || fstat(fd, &one) != 0 || stat("A", &other) != 0)
    return 1;
  assert(one.st_mtime == other.st_mtime && one.st_atime == other.st_atime && one.st_ctime == other.st_ctime);
  if (one.st_mtime < now - 1000000000)
    puts("old");
  else if (one.st_mtime > now + 1000000000)
    puts("from the future");
  else
    puts("as it is");
  int own = open("made", O_RDWR | O_CREAT, 0600);
  if (write(own, "x", 1) != 1 || write(fd, "x", 1) != 1 || fstat(own, &made) != 0 || fstat(fd, &other) != 0)
    return 2;
  assert(made.st_mtime - now < 10 && now - made.st_mtime < 10);
  assert(other.st_mtime - now < 10 && now - other.st_mtime < 10);
  // What the program dates itself has that date, however old it is.
  struct timespec old[2] = {{.tv_sec = 5}, {.tv_sec = 5}};
  if (utimensat(AT_FDCWD, "B", old, 0) != 0 || stat("B", &other) != 0)
    return 3;
  assert(other.st_mtime == 5 && other.st_atime == 5);
  return 0;
}

// Asks for the times of a file, and waits. Ends with an error if they are not what it has found before.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
  struct stat status;
  long before = 0;
  if (stat("file", &status) != 0)
    return 1;
  long now = status.st_mtime;
  int fd = open("found", O_RDWR | O_CREAT, 0600);
  if (read(fd, &before, sizeof before) == sizeof before && before != now)
    return 2;
  if (pwrite(fd, &now, sizeof now, 0) != sizeof now || fsync(fd) != 0)
    return 3;
  sleep(1);
  return 0;
}

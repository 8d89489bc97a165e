// exec:
#include "files.h"
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <termios.h>

static void show_device(const char *path) {
  struct stat status;
  if (stat(path, &status) != 0) {
    printf("%s: %s\n", path, error_name(errno));
    return;
  }
  printf("%s: %o %d %d\n", path, status.st_mode, major(status.st_rdev), minor(status.st_rdev));
}

int main(void) {
  char text[64];
  show_device("/dev/null");
  show_device("/dev/zero");
  show_device("/dev/full");
  show_device("/dev/random");
  show_device("/dev/urandom");
  show_device("/dev/none");
  int null = open("/dev/null", O_RDWR), zero = open("/dev/zero", O_RDWR);
  int full = open("/dev/full", O_RDWR), random = open("/dev/urandom", O_RDONLY);
  TRY(read(null, text, 64));
  TRY(write(null, text, 64));
  TRY(lseek(null, 5, SEEK_SET));
  TRY(lseek(null, 0, SEEK_END));
  memset(text, 1, 64);
  TRY(read(zero, text, 64));
  for (int at = 0; at < 64; at++)
    if (text[at]) printf("not zero at %d\n", at);
  TRY(write(zero, text, 64));
  TRY(read(full, text, 64));
  TRY(write(full, text, 64));
  TRY(write(full, text, 0));
  TRY(read(random, text, 64));
  int bits = 0;
  for (int at = 0; at < 64; at++) bits |= text[at];
  TRY(bits != 0);
  TRY(ftruncate(null, 0));
  TRY(open("/dev/null", O_RDONLY | O_DIRECTORY));
  TRY(open("/dev/null/x", O_RDONLY));
  TRY(open("/dev/null", O_WRONLY | O_TRUNC | O_CREAT, 0666) > 0);
  TRY(fsync(null));
  struct termios mode;
  struct winsize size;
  TRY(tcgetattr(null, &mode));
  TRY(isatty(null));
  TRY(ioctl(null, TIOCGWINSZ, &size));
  TRY(isatty(99));
  // A file, and what can be read of it.
  start_in("files-devices");
  make_file("file", "0123456789");
  int fd = open("file", O_RDWR), count = -1;
  TRY(read(fd, text, 3));
  TRY(ioctl(fd, FIONREAD, &count));
  printf("%d\n", count);
  TRY(ioctl(fd, FIOCLEX, 0));
  TRY(fcntl(fd, F_GETFD));
  TRY(ioctl(fd, FIONCLEX, 0));
  TRY(fcntl(fd, F_GETFD));
  int on = 1;
  TRY(ioctl(fd, FIONBIO, &on));
  TRY((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
  TRY(ioctl(99, FIONREAD, &count));
  // By the numbers of descriptors.
  int again = open("/dev/fd/3", O_RDONLY);
  TRY(again >= 0);
  snprintf(text, sizeof text, "/proc/self/fd/%d", fd);
  again = open(text, O_RDONLY);
  char one[2] = "";
  TRY(read(again, one, 1));
  printf("%s\n", one);
  TRY(open("/dev/fd/99", O_RDONLY));
  TRY(open("/dev/stdout", O_WRONLY) >= 0);
  TRY(open("/dev/stderr", O_WRONLY) >= 0);
  fflush(stdout);
  int out = open("/dev/stdout", O_WRONLY | O_APPEND);
  write(out, "said\n", 5);
  // Copies of descriptors.
  TRY(dup2(fd, 50));
  TRY(lseek(50, 0, SEEK_CUR));
  TRY(dup2(99, 50));
  TRY(dup2(fd, -1));
  TRY(dup2(fd, fd) == fd);
  TRY(dup3(fd, 60, O_CLOEXEC));
  TRY(fcntl(60, F_GETFD));
  TRY(dup3(fd, fd, 0));
  TRY(dup3(fd, 61, 0x1234));
  TRY(fcntl(fd, F_DUPFD, 70));
  TRY(fcntl(fd, F_DUPFD_CLOEXEC, 70));
  TRY(fcntl(71, F_GETFD));
  TRY(fcntl(fd, F_DUPFD, -1));
  TRY(syscall(SYS_close_range, 60, 1000, 0));
  TRY(fcntl(70, F_GETFD));
  TRY(fcntl(50, F_GETFD));
  TRY(syscall(SYS_close_range, 50, 50, 4));
  TRY(fcntl(50, F_GETFD));
  TRY(syscall(SYS_close_range, 5, 4, 0));
  TRY(close(50));
  TRY(close(50));
  TRY(close(-1));
  return 0;
}

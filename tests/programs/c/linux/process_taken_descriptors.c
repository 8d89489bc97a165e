// exec:
// pidfd_getfd: a descriptor of another process, for the same user.
#include "files.h"
#include <sys/prctl.h>

int main(void) {
  start_in("taken-descriptors");
  int ends[2], ready[2];
  pipe(ends);
  pipe(ready);
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    int fd = open("shared", O_CREAT | O_RDWR, 0600);
    dup2(fd, 50);
    write(50, "text", 4);
    write(ready[1], "r", 1);
    pause();
  }
  char text[8];
  read(ready[0], text, 1);
  int process = syscall(434, child, 0);
  int fd = syscall(438, process, 50, 0);
  TRY(fd >= 0 ? 0 : -1);
  TRY(fcntl(fd, F_GETFD));
  // One open file, with one offset.
  TRY(lseek(fd, 0, SEEK_CUR));
  TRY(lseek(fd, 1, SEEK_SET));
  TRY(read(fd, text, sizeof text));
  TRY(syscall(438, process, 51, 0));
  TRY(syscall(438, process, 50, 1));
  TRY(syscall(438, fd, 50, 0));
  TRY(syscall(438, -1, 50, 0));
  fflush(stdout);
  if (!fork()) {
    setgid(65534);
    setuid(65534);
    TRY(syscall(438, process, 50, 0));
    _exit(0);
  }
  wait(NULL);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  TRY(syscall(438, process, 50, 0));
  return 0;
}

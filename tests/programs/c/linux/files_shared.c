// exec:
#include "files.h"
#include <sys/resource.h>

// Offsets are shared by descriptors that are copies, also across fork, and not by those opened apart.
int main(void) {
  start_in("files-shared");
  make_file("file", "0123456789");
  char text[16] = "";
  int fd = open("file", O_RDWR), apart = open("file", O_RDWR), copy = dup(fd);
  TRY(read(fd, text, 2));
  TRY(lseek(copy, 0, SEEK_CUR));
  TRY(lseek(apart, 0, SEEK_CUR));
  IN_CHILD(TRY(read(fd, text, 3)); TRY(lseek(fd, 0, SEEK_CUR)));
  TRY(lseek(fd, 0, SEEK_CUR));
  IN_CHILD(TRY(close(fd)));
  TRY(lseek(fd, 0, SEEK_CUR));
  // Flags of the open file are shared, those of the descriptor are not.
  TRY(fcntl(copy, F_SETFL, O_APPEND));
  TRY((fcntl(fd, F_GETFL) & O_APPEND) != 0);
  TRY((fcntl(apart, F_GETFL) & O_APPEND) != 0);
  TRY(fcntl(copy, F_SETFD, FD_CLOEXEC));
  TRY(fcntl(fd, F_GETFD));
  // What one writes the other reads.
  TRY(pwrite(apart, "abc", 3, 0));
  TRY(pread(fd, text, 3, 0));
  printf("%.3s\n", text);
  TRY(write(fd, "end", 3));
  TRY(lseek(copy, 0, SEEK_CUR));
  // Each process has its own directory and mask.
  mkdir("dir", 0755);
  IN_CHILD(TRY(chdir("dir")); umask(0); make_file("inside", ""); show_status("inside"));
  show_folder("dir");
  make_file("outside", "");
  show_status("outside");
  // A folder that one process moves, the other is in.
  int ends[2], back[2];
  pipe(ends);
  pipe(back);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    chdir("dir");
    write(ends[1], "x", 1);
    read(back[0], text, 1);
    char path[128];
    puts(getcwd(path, sizeof path));
    TRY(access("inside", F_OK));
    fflush(stdout);
    _exit(0);
  }
  read(ends[0], text, 1);
  TRY(rename("dir", "moved"));
  fflush(stdout);
  write(back[1], "x", 1);
  waitpid(child, NULL, 0);
  // Both append: nothing is lost.
  int log = open("log", O_CREAT | O_WRONLY | O_APPEND, 0644);
  fflush(stdout);
  for (int at = 0; at < 3; at++) {
    if (fork() == 0) {
      for (int line = 0; line < 10; line++) write(log, "line\n", 5);
      _exit(0);
    }
  }
  for (int at = 0; at < 3; at++) wait(NULL);
  show_status("log");
  // As many as can be open.
  struct rlimit limit = {1024, 1024};
  setrlimit(RLIMIT_NOFILE, &limit);
  int count = 0, last = -1, next;
  while ((next = open("file", O_RDONLY)) >= 0 && count < 5000) {
    last = next;
    count++;
  }
  printf("%s after %d more than %d\n", error_name(errno), last > 1000, 1000);
  TRY(dup(fd));
  TRY(fcntl(fd, F_DUPFD, 0));
  TRY(close(last));
  TRY(dup(fd) == last);
  return 0;
}

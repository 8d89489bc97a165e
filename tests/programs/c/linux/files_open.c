// exec:
#include "files.h"

int main(void) {
  start_in("files-open");
  TRY(open("none", O_RDONLY));
  TRY(open("new", O_CREAT | O_RDWR, 0666));
  show_status("new");
  TRY(open("new", O_CREAT | O_EXCL | O_RDWR, 0666));
  TRY(open("new/", O_RDONLY));
  TRY(open("later/", O_CREAT | O_RDWR, 0666));
  TRY(open("none/file", O_CREAT | O_RDWR, 0666));
  TRY(open("new/file", O_CREAT | O_RDWR, 0666));
  TRY(open("", O_RDONLY));
  TRY(open(".", O_RDONLY));
  TRY(open(".", O_RDWR));
  TRY(open(".", O_CREAT | O_RDONLY, 0666));
  TRY(open("new", O_DIRECTORY | O_RDONLY));
  TRY(write(3, "hello", 5));
  TRY(open("new", O_WRONLY | O_TRUNC));
  TRY(lseek(3, 0, SEEK_END));
  TRY(open("new", O_RDONLY | O_APPEND));
  TRY(write(6, "x", 1));
  TRY(close(6));
  // Links.
  TRY(symlink("target", "dangling"));
  TRY(symlink("new", "near"));
  TRY(symlink("loop", "loop"));
  TRY(open("dangling", O_RDONLY));
  TRY(open("dangling", O_CREAT | O_EXCL | O_RDWR, 0666));
  TRY(open("dangling", O_CREAT | O_NOFOLLOW | O_RDWR, 0666));
  TRY(open("dangling", O_CREAT | O_RDWR, 0640));
  show_status("target");
  TRY(open("near", O_RDONLY | O_NOFOLLOW));
  TRY(open("loop", O_RDONLY));
  TRY(open("near", O_PATH | O_NOFOLLOW));
  char text[16] = "";
  TRY(readlinkat(7, "", text, sizeof text));
  printf("%.3s\n", text);
  TRY(close(7));
  // What can be done with a path only.
  TRY(open("new", O_PATH));
  TRY(read(7, text, 1));
  TRY(write(7, text, 1));
  TRY(lseek(7, 0, SEEK_SET));
  TRY(fchmod(7, 0600));
  TRY(ftruncate(7, 0));
  TRY(fcntl(7, F_GETFL) == O_PATH);
  struct stat status;
  TRY(fstat(7, &status));
  TRY(dup(7));
  TRY(close(8));
  TRY(close(7));
  // Flags as they are kept.
  int fd = open("new", O_RDWR | O_APPEND | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0600);
  printf("%o %d\n", fcntl(fd, F_GETFL) & ~0100000, fcntl(fd, F_GETFD));
  TRY(fcntl(fd, F_SETFL, 0));
  printf("%o\n", fcntl(fd, F_GETFL) & ~0100000);
  TRY(fcntl(fd, F_SETFD, 0));
  TRY(fcntl(fd, F_GETFD));
  TRY(creat("made", 0604));
  show_status("made");
  TRY(open("new", O_RDONLY | O_DIRECTORY | O_CREAT, 0600) < 0);
  // Long names.
  char name[5000];
  memset(name, 'n', sizeof name);
  name[255] = 0;
  TRY(open(name, O_CREAT | O_RDWR, 0600) > 0);
  name[255] = 'n';
  name[256] = 0;
  TRY(open(name, O_CREAT | O_RDWR, 0600));
  for (int at = 1; at < 5000; at += 2) name[at] = '/';
  name[256] = '/';
  name[4999] = 0;
  TRY(open(name, O_RDONLY));
  // Relative to a folder.
  TRY(mkdir("dir", 0755));
  int dir = open("dir", O_RDONLY | O_DIRECTORY);
  TRY(openat(dir, "inside", O_CREAT | O_WRONLY, 0600) > 0);
  TRY(openat(dir, "../new", O_RDONLY) > 0);
  TRY(openat(fd, "inside", O_RDONLY));
  TRY(openat(99, "inside", O_RDONLY));
  TRY(openat(99, "/tmp", O_RDONLY) > 0);
  show_folder("dir");
  return 0;
}

// exec:
// What other users may do: move directories, write to programs that run as their owner, make devices.
#include "files.h"
#include <sys/sysmacros.h>

static void as_nobody(void (*work)(void)) {
  fflush(stdout);
  if (fork() == 0) {
    setgid(65534);
    setuid(65534);
    work();
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
}

static void show_device(const char *path) {
  struct stat status;
  if (stat(path, &status) == 0)
    printf("%s: type %o, %u, %u\n", path, status.st_mode & S_IFMT, major(status.st_rdev), minor(status.st_rdev));
}

static void show_mode(const char *path) {
  struct stat status;
  stat(path, &status);
  printf("%s: mode %o\n", path, status.st_mode & 07777);
}

static void moves(void) {
  TRY(rename("a/d", "a/e"));
  TRY(rename("a/e", "a/d"));
  TRY(rename("a/d", "b/d"));
  TRY(rename("a/d", "b/full"));
  TRY(rename("a/d", "b/file"));
  TRY(rename("a/file", "b/new"));
}

static void writes(void) {
  int file = open("suid", O_WRONLY);
  TRY(write(file, "", 0));
  TRY(write(file, "x", 1));
  close(file);
}

static void truncates(void) { TRY(truncate("suid", 0)); }

static void nodes(void) {
  TRY(mknod("b/char", S_IFCHR | 0600, makedev(1, 2)));
  TRY(mknod("b/file", S_IFCHR | 0600, makedev(1, 2)));
  TRY(mknod("b/file/x", S_IFBLK | 0600, makedev(1, 2)));
  TRY(mknod("char", S_IFBLK | 0600, makedev(1, 2)));
  TRY(link("b", "b/file"));
  TRY(link("b", "b/file/x"));
}

int main(void) {
  start_in("files-permissions");
  umask(0);
  mkdir("a", 0777);
  mkdir("b", 0777);
  mkdir("a/d", 0755);
  mkdir("b/full", 0777);
  mkdir("b/full/x", 0777);
  make_file("a/file", "");
  make_file("b/file", "");
  as_nobody(moves);
  TRY(rename("a/d", "b/d"));
  make_file("suid", "text");
  chmod("suid", 06777);
  as_nobody(writes);
  show_mode("suid");
  chmod("suid", 06777);
  as_nobody(truncates);
  show_mode("suid");
  chmod("suid", 06766);
  as_nobody(truncates);
  show_mode("suid");
  chmod("suid", 06777);
  TRY(truncate("suid", 1));
  writes();
  show_mode("suid");
  TRY(mknod("char", S_IFCHR | 0600, makedev(1, 2)));
  show_device("char");
  TRY(mknod("block", S_IFBLK | 0600, makedev(259, 70000)));
  show_device("block");
  TRY(mknod("directory", S_IFDIR | 0600, 0));
  TRY(open("block", O_RDONLY | O_NONBLOCK));
  as_nobody(nodes);
  return 0;
}

// exec:
// Extended attributes: setting, reading, listing, removing, and who may do that where.
#include "files.h"
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/xattr.h>

static char value[70000], big[70000];

// The order depends on the file system.
static void show_names(const char *path) {
  const char *all[] = {"security.a", "trusted.a", "trusted.z", "user.a", "user.b", "user.big", "user.empty", "user.t"};
  long got = listxattr(path, value, sizeof value);
  printf("%s %ld:", path, got);
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
    for (char *name = value; name < value + got; name += strlen(name) + 1)
      if (strcmp(name, all[i]) == 0) printf(" %s", name);
  puts("");
}

static void with_values(void) {
  TRY(getxattr("file", "user.a", value, 10));
  TRY(setxattr("file", "user.a", "abc", 3, 0));
  TRY(getxattr("file", "user.a", value, 10));
  printf("%.3s\n", value);
  TRY(getxattr("file", "user.a", NULL, 0));
  TRY(getxattr("file", "user.a", value, 2));
  TRY(getxattr("file", "user.a", value, 3));
  TRY(setxattr("file", "user.a", "abcd", 4, XATTR_CREATE));
  TRY(setxattr("file", "user.a", "abcd", 4, XATTR_REPLACE));
  TRY(setxattr("file", "user.none", "z", 1, XATTR_REPLACE));
  TRY(setxattr("file", "user.a", "x", 1, XATTR_CREATE | XATTR_REPLACE));
  TRY(setxattr("file", "user.a", "x", 1, 4));
  TRY(setxattr("file", "user.empty", NULL, 0, 0));
  TRY(getxattr("file", "user.empty", value, 10));
  TRY(setxattr("file", "user.b", "1", 1, 0));
  show_names("file");
  TRY(listxattr("file", value, 3));
  TRY(listxattr("file", NULL, 0));
  TRY(removexattr("file", "user.b"));
  TRY(removexattr("file", "user.b"));
  TRY(setxattr("file", "user.big", big, 65537, 0));
  TRY(setxattr("file", "user.big", big, 65536, 0));
  TRY(setxattr("file", "user.big", big, 5000, 0));
  TRY(setxattr("file", "user.big", big, 3000, 0));
  TRY(setxattr("file", "user.more", big, 2000, 0));
  TRY(getxattr("file", "user.big", value, 65536));
  TRY(setxattr("file", "user.x", NULL, 1, 0));
  TRY(setxattr("file", NULL, "x", 1, 0));
  TRY(getxattr("file", "user.a", (char *)8, 10));
}

static void with_names(void) {
  TRY(setxattr("file", "bad", "x", 1, 0));
  TRY(setxattr("file", "", "x", 1, 0));
  TRY(setxattr("file", "user.", "x", 1, 0));
  TRY(setxattr("file", "user", "x", 1, 0));
  TRY(getxattr("file", "bad", value, 1));
  TRY(getxattr("file", "user.", value, 1));
  TRY(removexattr("file", "bad"));
  TRY(setxattr("file", "trusted.a", "x", 1, 0));
  TRY(setxattr("file", "security.a", "x", 1, 0));
  TRY(setxattr("file", "security.capability", "x", 1, 0));
  TRY(getxattr("file", "system.a", value, 1));
  TRY(getxattr("file", "system.posix_acl_access", value, 100));
  TRY(setxattr("file", "system.posix_acl_access", "xx", 2, 0));
  TRY(removexattr("file", "system.posix_acl_access"));
  show_names("file");
  char name[300] = "user.";
  memset(name + 5, 'n', 250);
  TRY(setxattr("file", name, "x", 1, 0));
  name[255] = 'n';
  TRY(setxattr("file", name, "x", 1, 0));
  name[255] = 0;
  TRY(removexattr("file", name));
}

static void with_kinds_of_files(void) {
  TRY(setxattr("folder", "user.a", "x", 1, 0));
  TRY(getxattr("folder", "user.a", value, 10));
  TRY(setxattr("fifo", "user.a", "x", 1, 0));
  TRY(getxattr("fifo", "user.a", value, 10));
  TRY(setxattr("fifo", "trusted.a", "x", 1, 0));
  TRY(lsetxattr("link", "user.a", "x", 1, 0));
  TRY(lsetxattr("link", "trusted.a", "x", 1, 0));
  TRY(lgetxattr("link", "trusted.a", value, 10));
  TRY(llistxattr("link", value, 100));
  TRY(lremovexattr("link", "trusted.a"));
  TRY(setxattr("none", "user.a", "x", 1, 0));
  TRY(setxattr("file/x", "user.a", "x", 1, 0));
  TRY(setxattr("/dev/null", "user.a", "x", 1, 0));
  TRY(getxattr("/proc/self/stat", "user.a", value, 1));
  TRY(setxattr("/proc/self/stat", "user.a", "x", 1, 0));
  int fd = open("file", O_RDONLY), path = open("file", O_PATH), ends[2];
  TRY(fsetxattr(fd, "user.c", "y", 1, 0));
  TRY(fgetxattr(fd, "user.c", value, 1));
  TRY(fremovexattr(fd, "user.c"));
  TRY(fsetxattr(path, "user.c", "y", 1, 0));
  TRY(flistxattr(path, NULL, 0));
  TRY(fgetxattr(999, "user.c", value, 1));
  pipe(ends);
  TRY(fsetxattr(ends[0], "user.a", "x", 1, 0));
  TRY(fgetxattr(ends[0], "user.a", value, 1));
  TRY(flistxattr(ends[0], value, 100));
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  TRY(flistxattr(s, value, 100));
  puts(value);
  TRY(fgetxattr(s, "system.sockprotoname", value, 100));
  puts(value);
  TRY(link("file", "second"));
  TRY(getxattr("second", "user.a", value, 100));
  TRY(rename("second", "third"));
  TRY(getxattr("third", "user.a", value, 100));
}

static void without_privileges(void) {
  TRY(setxattr("file", "user.x", "x", 1, 0));
  TRY(getxattr("file", "user.a", value, 10));
  show_names("file");
  TRY(getxattr("read", "user.a", value, 10));
  TRY(setxattr("read", "user.x", "x", 1, 0));
  TRY(setxattr("both", "user.x", "x", 1, 0));
  TRY(removexattr("both", "user.x"));
  TRY(getxattr("write", "user.a", value, 10));
  TRY(setxattr("write", "user.x", "x", 1, 0));
  TRY(setxattr("both", "trusted.a", "x", 1, 0));
  TRY(getxattr("both", "trusted.z", value, 10));
  show_names("both");
  TRY(setxattr("both", "security.a", "x", 1, 0));
  TRY(setxattr("sticky", "user.a", "x", 1, 0));
  TRY(setxattr("read", "bad", "x", 1, 0));
}

static void make(const char *name, int mode) {
  close(open(name, O_CREAT | O_RDWR, 0600));
  setxattr(name, "user.a", "value", 5, 0);
  setxattr(name, "trusted.z", "value", 5, 0);
  chmod(name, mode);
}

int main(void) {
  start_in("extended");
  make_file("file", "text");
  mkdir("folder", 0755);
  mkfifo("fifo", 0644);
  symlink("file", "link");
  memset(big, 'x', sizeof big);
  with_values();
  with_names();
  with_kinds_of_files();
  struct stat before, after;
  stat("file", &before);
  usleep(20000);
  setxattr("file", "user.t", "1", 1, 0);
  stat("file", &after);
  printf("%d %d\n", memcmp(&before.st_ctim, &after.st_ctim, sizeof before.st_ctim) != 0,
         memcmp(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim) != 0);
  chmod("file", 0600);
  chmod(".", 0755);
  make("read", 0444);
  make("write", 0222);
  make("both", 0666);
  mkdir("sticky", 0755);
  chmod("sticky", 01777);
  fflush(stdout);
  if (fork() == 0) {
    setgid(1000);
    setuid(1000);
    without_privileges();
    exit(0);
  }
  wait(NULL);
  return 0;
}

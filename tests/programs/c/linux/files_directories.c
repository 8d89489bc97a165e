// exec:
#include "files.h"

int main(void) {
  start_in("files-directories");
  TRY(mkdir("a", 0777));
  TRY(mkdir("a", 0777));
  TRY(mkdir("a/", 0777));
  TRY(mkdir("a/.", 0777));
  TRY(mkdir("a/..", 0777));
  TRY(mkdir("/", 0777));
  TRY(mkdir("none/b", 0777));
  TRY(mkdir("b/", 0700));
  TRY(mkdir("", 0700));
  umask(0);
  TRY(mkdir("c", 01777));
  umask(077);
  TRY(mkdir("d", 0777));
  TRY(umask(022));
  for (const char *name = "abcd"; *name; name++) {
    char text[2] = {*name, 0};
    show_status(text);
  }
  show_status(".");
  make_file("file", "");
  TRY(mkdir("file", 0777));
  TRY(mkdir("file/x", 0777));
  TRY(rmdir("file"));
  TRY(rmdir("none"));
  TRY(rmdir("a/."));
  TRY(rmdir("a/.."));
  TRY(rmdir("."));
  TRY(rmdir("/"));
  TRY(mkdir("a/inner", 0755));
  show_status("a");
  TRY(rmdir("a"));
  TRY(rmdir("a/inner/"));
  show_status("a");
  TRY(rmdir("a"));
  TRY(unlink("b"));
  TRY(unlink("."));
  TRY(unlink("/"));
  TRY(unlink("file/"));
  TRY(unlink("none"));
  TRY(unlink(""));
  TRY(unlink("file"));
  TRY(unlinkat(AT_FDCWD, "b", 0));
  TRY(unlinkat(AT_FDCWD, "b", AT_REMOVEDIR));
  TRY(unlinkat(AT_FDCWD, "c", 0x55));
  // In and out.
  char path[100];
  TRY(chdir("c"));
  puts(getcwd(path, sizeof path));
  TRY(getcwd(path, 5) != NULL);
  TRY(chdir("none"));
  TRY(chdir(".."));
  make_file("plain", "");
  TRY(chdir("plain"));
  int dir = open("d", O_RDONLY);
  TRY(fchdir(dir));
  puts(getcwd(path, sizeof path));
  int plain = open("../plain", O_RDONLY);
  TRY(fchdir(plain));
  TRY(fchdir(99));
  // A directory that is gone while somebody is in it.
  TRY(rmdir("../d"));
  TRY(getcwd(path, sizeof path) != NULL);
  TRY(mkdir("new", 0755));
  TRY(open("new", O_CREAT | O_RDWR, 0644));
  TRY(open(".", O_RDONLY) >= 0);
  TRY(chdir(".."));
  puts(getcwd(path, sizeof path));
  struct stat status;
  fstat(dir, &status);
  printf("%ld links\n", (long)status.st_nlink);
  show_folder(".");
  return 0;
}

// exec:
#include "files.h"

int main(void) {
  start_in("files-rename");
  make_file("a", "A");
  make_file("b", "B");
  TRY(rename("a", "c"));
  show_file("c");
  show_file("a");
  TRY(rename("c", "b"));
  show_file("b");
  TRY(rename("none", "x"));
  TRY(rename("b", "none/x"));
  TRY(rename("b", "b"));
  TRY(rename("b", "./b"));
  TRY(rename("b", "b/"));
  TRY(rename("b/", "x"));
  TRY(rename("", "x"));
  TRY(rename("b", ""));
  // Folders.
  mkdir("d", 0755);
  mkdir("d/e", 0755);
  mkdir("f", 0755);
  make_file("f/full", "");
  TRY(rename("d", "b"));
  TRY(rename("b", "d"));
  TRY(rename("d", "f"));
  TRY(rename("d", "d/e/inside"));
  TRY(rename("d", "d"));
  TRY(rename("d/e", "d"));
  TRY(rename(".", "x"));
  TRY(rename("d/..", "x"));
  TRY(rename("d", "."));
  TRY(rename("d", "g/"));
  show_status("g");
  TRY(rename("g/e", "f/e"));
  show_status("g");
  show_status("f");
  mkdir("empty", 0755);
  TRY(rename("f/e", "empty"));
  show_status("f");
  show_folder(".");
  // Two names of one file: nothing happens.
  TRY(link("b", "twin"));
  TRY(rename("b", "twin"));
  show_status("b");
  show_folder(".");
  // A link is moved itself.
  TRY(symlink("b", "link"));
  TRY(rename("link", "moved"));
  char text[8] = "";
  TRY(readlink("moved", text, 8));
  // What is replaced stays for those who have it open.
  int fd = open("twin", O_RDONLY);
  make_file("new", "N");
  TRY(rename("new", "twin"));
  TRY(read(fd, text, 8));
  printf("%c\n", text[0]);
  show_file("twin");
  show_status("b");
  // With flags.
  make_file("one", "1");
  make_file("two", "2");
  TRY(syscall(SYS_renameat2, AT_FDCWD, "one", AT_FDCWD, "two", 1));
  TRY(syscall(SYS_renameat2, AT_FDCWD, "one", AT_FDCWD, "three", 1));
  TRY(syscall(SYS_renameat2, AT_FDCWD, "three", AT_FDCWD, "two", 2));
  show_file("two");
  show_file("three");
  TRY(syscall(SYS_renameat2, AT_FDCWD, "two", AT_FDCWD, "f", 2));
  show_file("f");
  show_folder("two");
  TRY(syscall(SYS_renameat2, AT_FDCWD, "two", AT_FDCWD, "none", 2));
  TRY(syscall(SYS_renameat2, AT_FDCWD, "two", AT_FDCWD, "three", 3));
  // Between folders that are open.
  int from = open("g", O_RDONLY), to = open("empty", O_RDONLY);
  make_file("g/file", "moved");
  TRY(renameat(from, "file", to, "elsewhere"));
  show_file("empty/elsewhere");
  TRY(renameat(from, "file", to, "elsewhere"));
  // A folder that was moved knows where it is.
  mkdir("g/deep", 0755);
  TRY(chdir("g/deep"));
  TRY(rename("../../g", "../../h"));
  char path[100];
  puts(getcwd(path, sizeof path));
  TRY(rename("../deep", "../../out"));
  puts(getcwd(path, sizeof path));
  TRY(access("../empty", F_OK));
  return 0;
}

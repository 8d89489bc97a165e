// exec:
#include "files.h"

int main(void) {
  start_in("files-links");
  make_file("file", "text");
  TRY(link("file", "second"));
  show_status("second");
  TRY(link("file", "second"));
  TRY(link("none", "x"));
  TRY(link("file", "none/x"));
  TRY(link("file", "x/"));
  TRY(link(".", "x"));
  make_file("second", "changed");
  show_file("file");
  TRY(unlink("file"));
  show_status("second");
  // Symbolic links.
  TRY(symlink("second", "link"));
  TRY(symlink("second", "link"));
  TRY(symlink("", "x"));
  TRY(symlink("a", ""));
  TRY(symlink("a", "none/x"));
  TRY(symlink("a", "x/"));
  show_status("link");
  show_file("link");
  char text[64];
  memset(text, '-', sizeof text);
  TRY(readlink("link", text, sizeof text));
  printf("%.8s\n", text);
  TRY(readlink("link", text, 3));
  TRY(readlink("link", text, 0));
  TRY(readlink("second", text, 8));
  TRY(readlink("none", text, 8));
  TRY(readlink(".", text, 8));
  // A link has a name of its own.
  TRY(link("link", "hard"));
  show_status("hard");
  TRY(linkat(AT_FDCWD, "link", AT_FDCWD, "followed", AT_SYMLINK_FOLLOW));
  show_status("followed");
  TRY(linkat(AT_FDCWD, "link", AT_FDCWD, "x", 0x77));
  TRY(unlink("link"));
  show_status("second");
  // Through links to folders.
  mkdir("dir", 0755);
  make_file("dir/inside", "deep");
  TRY(symlink("dir", "way"));
  show_file("way/inside");
  TRY(symlink("way/inside", "long"));
  show_file("long");
  struct stat status;
  TRY(lstat("way/", &status));
  TRY(S_ISDIR(status.st_mode));
  TRY(lstat("way", &status));
  TRY(S_ISLNK(status.st_mode));
  TRY(unlink("way/"));
  TRY(rmdir("way"));
  TRY(mkdir("way", 0755));
  TRY(symlink("/tmp/everett-files-links/dir", "absolute"));
  show_folder("absolute");
  TRY(symlink("../files-links-none", "outside"));
  TRY(stat("outside", &status));
  TRY(symlink("b-loop", "a-loop"));
  TRY(symlink("a-loop", "b-loop"));
  TRY(stat("a-loop", &status));
  TRY(lstat("a-loop", &status));
  TRY(symlink("long/", "slashed"));
  TRY(stat("slashed", &status));
  // Forty links are followed, one more is not.
  make_file("l0", "end");
  for (int at = 1; at <= 41; at++) {
    char from[16], to[16];
    snprintf(to, sizeof to, "l%d", at - 1);
    snprintf(from, sizeof from, "l%d", at);
    symlink(to, from);
  }
  show_file("l40");
  show_file("l41");
  int dir = open("dir", O_RDONLY);
  TRY(symlinkat("inside", dir, "near"));
  memset(text, 0, sizeof text);
  TRY(readlinkat(dir, "near", text, sizeof text));
  puts(text);
  TRY(readlinkat(dir, "inside", text, sizeof text));
  TRY(linkat(dir, "inside", AT_FDCWD, "third", 0));
  show_status("dir/inside");
  return 0;
}

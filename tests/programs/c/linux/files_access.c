// exec:
#include "files.h"
#include <grp.h>

static void as_nobody(void) {
  TRY(access("read", R_OK));
  TRY(setgroups(0, NULL));
  TRY(setgid(65534));
  TRY(setuid(65534));
  TRY(open("read", O_RDONLY) >= 0);
  TRY(open("read", O_WRONLY));
  TRY(open("write", O_RDONLY));
  TRY(open("write", O_WRONLY) >= 0);
  TRY(open("secret", O_RDONLY));
  TRY(open("secret", O_RDONLY | O_CREAT, 0600));
  TRY(open("read", O_RDONLY | O_TRUNC));
  TRY(access("read", R_OK));
  TRY(access("read", W_OK));
  TRY(access("read", X_OK));
  TRY(access("program", X_OK));
  TRY(access("secret", F_OK));
  TRY(access("closed/file", F_OK));
  TRY(open("closed/file", O_RDONLY));
  TRY(chdir("closed"));
  TRY(open("new", O_CREAT | O_RDWR, 0644));
  TRY(mkdir("new", 0755));
  TRY(unlink("read"));
  TRY(rename("read", "other"));
  TRY(link("read", "other"));
  TRY(symlink("read", "other"));
  TRY(chmod("read", 0777));
  TRY(chown("read", 65534, 65534));
  TRY(truncate("read", 0));
  TRY(truncate("write", 0));
  TRY(utimensat(AT_FDCWD, "read", NULL, 0));
  TRY(utimensat(AT_FDCWD, "write", NULL, 0));
  struct timespec times[2] = {{1, 1}, {1, 1}};
  TRY(utimensat(AT_FDCWD, "write", times, 0));
  show_folder("closed");
  show_folder("unreadable");
  TRY(access("unreadable/file", F_OK));
  // A folder that is open to all, with the sticky bit.
  TRY(unlink("sticky/foreign"));
  TRY(rename("sticky/foreign", "sticky/mine"));
  TRY(open("sticky/mine", O_CREAT | O_RDWR, 0600) >= 0);
  show_status("sticky/mine");
  TRY(chmod("sticky/mine", 0644));
  TRY(chown("sticky/mine", 65534, 65534));
  TRY(chown("sticky/mine", 0, -1));
  TRY(chown("sticky/mine", -1, 0));
  TRY(unlink("sticky/mine"));
  TRY(unlink("open/foreign"));
  TRY(access("/tmp/everett-files-access/closed/file", F_OK));
  TRY(setuid(0));
}

static void as_member(void) {
  gid_t groups[] = {500};
  TRY(setgroups(1, groups));
  TRY(setgid(65534));
  TRY(setuid(65534));
  TRY(open("group", O_RDONLY) >= 0);
  TRY(open("group", O_WRONLY));
}

int main(void) {
  start_in("files-access");
  make_file("read", "r");
  make_file("write", "w");
  make_file("secret", "s");
  make_file("program", "p");
  make_file("group", "g");
  chmod("read", 0644);
  chmod("write", 0622);
  chmod("secret", 0600);
  chmod("program", 0755);
  chmod("group", 0640);
  chown("group", 0, 500);
  mkdir("closed", 0700);
  make_file("closed/file", "");
  mkdir("unreadable", 0711);
  make_file("unreadable/file", "");
  mkdir("sticky", 0755);
  chmod("sticky", 01777);
  make_file("sticky/foreign", "");
  mkdir("open", 0755);
  chmod("open", 0777);
  make_file("open/foreign", "");
  // As root.
  TRY(access("secret", R_OK | W_OK));
  TRY(access("secret", X_OK));
  TRY(access("program", X_OK));
  TRY(access("closed", X_OK));
  TRY(access("none", F_OK));
  TRY(access("secret/x", F_OK));
  TRY(access("secret", 8));
  TRY(faccessat(AT_FDCWD, "program", X_OK, AT_EACCESS));
  chmod("secret", 0);
  TRY(open("secret", O_RDWR) >= 0);
  chmod("secret", 0600);
  IN_CHILD(as_nobody());
  IN_CHILD(as_member());
  // Only the effective user changes.
  TRY(seteuid(65534));
  TRY(open("secret", O_RDONLY));
  TRY(access("secret", R_OK));
  TRY(faccessat(AT_FDCWD, "secret", R_OK, AT_EACCESS));
  TRY(seteuid(0));
  TRY(open("secret", O_RDONLY) >= 0);
  return 0;
}

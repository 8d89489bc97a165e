// exec:
#include "files.h"
#include <sys/statfs.h>
#include <utime.h>
#include <sys/time.h>

static void show_times(const char *path) {
  struct stat status;
  if (lstat(path, &status) != 0) return;
  printf("%s: read %ld.%09ld, written %ld.%09ld\n", path, (long)status.st_atim.tv_sec,
         status.st_atim.tv_nsec, (long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

static int newer(struct timespec a, struct timespec b) {
  return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

static void pause_a_little(void) {
  struct timespec time = {0, 20000000};
  nanosleep(&time, NULL);
}

int main(void) {
  start_in("files-attributes");
  make_file("file", "text");
  TRY(chmod("file", 0));
  show_status("file");
  TRY(chmod("file", 07777));
  show_status("file");
  TRY(chmod("file", 0100640));
  show_status("file");
  TRY(chmod("none", 0600));
  TRY(chmod("", 0600));
  int fd = open("file", O_RDONLY);
  TRY(fchmod(fd, 0755));
  TRY(fchmod(99, 0755));
  show_status("file");
  symlink("file", "link");
  TRY(chmod("link", 0711));
  show_status("file");
  show_status("link");
  TRY(fchmodat(AT_FDCWD, "link", 0722, 0));
  show_status("file");
  TRY(mkdir("dir", 0777));
  TRY(chmod("dir", 02770));
  TRY(mkdir("dir/inner", 0755));
  show_status("dir/inner");
  // Owners.
  TRY(chown("file", 12, 34));
  show_status("file");
  TRY(chown("file", -1, 56));
  TRY(chown("link", 78, -1));
  show_status("file");
  show_status("link");
  TRY(lchown("link", 9, 10));
  show_status("link");
  TRY(fchown(fd, 11, 12));
  TRY(fchownat(AT_FDCWD, "link", 13, 14, AT_SYMLINK_NOFOLLOW));
  TRY(fchownat(fd, "", 15, 16, AT_EMPTY_PATH));
  show_status("file");
  show_status("link");
  TRY(chown("none", 1, 1));
  TRY(chown("dir", 0, 77));
  make_file("dir/child", "");
  show_status("dir/child");
  TRY(chmod("file", 06755));
  TRY(chown("file", 0, 0));
  show_status("file");
  // Times.
  struct timespec times[2] = {{1000, 5}, {2000, 999999999}};
  TRY(utimensat(AT_FDCWD, "file", times, 0));
  show_times("file");
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = -5;
  TRY(utimensat(AT_FDCWD, "file", times, 0));
  show_times("file");
  times[1].tv_nsec = 1000000000;
  TRY(utimensat(AT_FDCWD, "file", times, 0));
  times[0].tv_nsec = 7;
  times[1].tv_nsec = 8;
  TRY(utimensat(AT_FDCWD, "link", times, AT_SYMLINK_NOFOLLOW));
  show_times("link");
  show_times("file");
  TRY(futimens(fd, times));
  show_times("file");
  TRY(futimens(99, times));
  TRY(utimensat(AT_FDCWD, "none", times, 0));
  struct utimbuf old = {11, 22};
  TRY(utime("file", &old));
  show_times("file");
  struct timeval both[2] = {{33, 44}, {55, 66}};
  TRY(utimes("file", both));
  show_times("file");
  struct stat before, after;
  stat("file", &before);
  TRY(utimensat(AT_FDCWD, "file", NULL, 0));
  stat("file", &after);
  printf("%d %d\n", newer(after.st_mtim, before.st_mtim), newer(after.st_atim, before.st_atim));
  // What changes which times.
  stat("file", &before);
  pause_a_little();
  chmod("file", 0644);
  stat("file", &after);
  printf("chmod: %d %d\n", newer(after.st_mtim, before.st_mtim), newer(after.st_ctim, before.st_ctim));
  pause_a_little();
  before = after;
  int writer = open("file", O_WRONLY);
  write(writer, "x", 1);
  stat("file", &after);
  printf("write: %d %d\n", newer(after.st_mtim, before.st_mtim), newer(after.st_ctim, before.st_ctim));
  pause_a_little();
  before = after;
  link("file", "other");
  stat("file", &after);
  printf("link: %d %d\n", newer(after.st_mtim, before.st_mtim), newer(after.st_ctim, before.st_ctim));
  stat(".", &before);
  pause_a_little();
  unlink("other");
  stat(".", &after);
  printf("unlink, folder: %d %d\n", newer(after.st_mtim, before.st_mtim),
         newer(after.st_ctim, before.st_ctim));
  before = after;
  pause_a_little();
  rename("file", "renamed");
  stat(".", &after);
  printf("rename, folder: %d\n", newer(after.st_mtim, before.st_mtim));
  before = after;
  pause_a_little();
  make_file("renamed", "again");
  stat(".", &after);
  printf("write, folder: %d\n", newer(after.st_mtim, before.st_mtim));
  stat("renamed", &before);
  pause_a_little();
  truncate("renamed", 2);
  stat("renamed", &after);
  printf("truncate: %d\n", newer(after.st_mtim, before.st_mtim));
  // The file system.
  struct statfs room;
  TRY(statfs(".", &room));
  printf("%ld %ld %d\n", (long)room.f_bsize, (long)room.f_namelen, room.f_bfree <= room.f_blocks);
  TRY(fstatfs(fd, &room));
  TRY(statfs("none", &room));
  TRY(fstatfs(99, &room));
  return 0;
}

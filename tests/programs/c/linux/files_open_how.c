// exec:
// `openat2`: what it checks, and where a path may lead.
#include "files.h"

struct how {
  uint64_t flags, mode, resolve, later;
};

enum { NO_XDEV = 1, NO_MAGIC = 2, NO_LINKS = 4, BENEATH = 8, IN_ROOT = 16, CACHED = 32 };

static long open_how(int dir, const char *path, uint64_t flags, uint64_t mode, uint64_t resolve) {
  struct how how = {flags, mode, resolve, 0};
  long fd = syscall(437, dir, path, &how, 24);
  if (fd >= 0) close(fd);
  return fd;
}

static long sized(uint64_t later, size_t size) {
  static struct how how[256];
  memset(how, 0, sizeof how);
  how[0].later = later;
  long fd = syscall(437, AT_FDCWD, "file", how, size);
  if (fd >= 0) close(fd);
  return fd;
}

int main(void) {
  start_in("files-open-how");
  mkdir("box", 0755);
  mkdir("box/in", 0755);
  make_file("file", "outside");
  make_file("box/file", "inside");
  symlink("file", "box/near");
  symlink("../file", "box/up");
  symlink("in/../file", "box/around");
  symlink("/file", "box/absolute");
  symlink("/tmp/everett-files-open-how/file", "box/far");
  symlink("in", "box/folder");
  symlink("in/new", "box/dangling");
  symlink("loop", "box/loop");
  // Sizes.
  TRY(sized(0, 0));
  TRY(sized(0, 23));
  TRY(sized(0, 24));
  TRY(sized(1, 24));
  TRY(sized(1, 32));
  TRY(sized(0, 32));
  TRY(sized(0, 4096));
  TRY(sized(0, 4097));
  TRY(syscall(437, AT_FDCWD, "file", NULL, 24));
  // Flags and modes.
  TRY(open_how(AT_FDCWD, "file", 1ull << 40, 0, 0));
  TRY(open_how(AT_FDCWD, "file", 1 << 26, 0, 0));
  TRY(open_how(AT_FDCWD, "file", O_RDONLY, 0600, 0));
  TRY(open_how(AT_FDCWD, "file", O_CREAT | O_RDWR, 010600, 0));
  TRY(open_how(AT_FDCWD, "file", O_CREAT | O_RDWR, 07777, 0));
  TRY(open_how(AT_FDCWD, "file", O_PATH | O_RDWR, 0, 0));
  TRY(open_how(AT_FDCWD, "file", O_PATH | O_CREAT, 0, 0));
  TRY(open_how(AT_FDCWD, "file", O_PATH | O_CLOEXEC | O_NOFOLLOW, 0, 0));
  TRY(open_how(AT_FDCWD, "box", O_DIRECTORY | O_CREAT, 0600, 0));
  TRY(open_how(AT_FDCWD, ".", O_TMPFILE | O_RDONLY, 0600, 0));
  TRY(open_how(AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0600, 0));
  TRY(open_how(AT_FDCWD, "file", 0, 0, 64));
  TRY(open_how(AT_FDCWD, "file", 0, 0, 1ull << 32));
  TRY(open_how(AT_FDCWD, "file", 0, 0, BENEATH | IN_ROOT));
  TRY(open_how(AT_FDCWD, "", 0, 0, 0));
  TRY(open_how(77, "file", 0, 0, 0));
  TRY(open_how(77, "/tmp", 0, 0, 0));
  TRY(open_how(77, "/tmp", 0, 0, BENEATH));
  TRY(open_how(77, "/tmp", 0, 0, IN_ROOT));
  TRY(open_how(77, "", 0, 0, IN_ROOT));
  // Where paths lead.
  int box = open("box", O_PATH | O_DIRECTORY);
  static const char *paths[] = {"file",      "in",       "in/../file", "../file", "..",          "/",
                                "/file",     "near",     "up",         "around",  "absolute",    "far",
                                "folder",    "folder/",  "folder/..",  "loop",    "none",        "in/../..",
                                "../box/in", "/../file", "dangling",   ".",       "folder/none", "file/none"};
  static const int resolves[] = {0, NO_XDEV, NO_MAGIC, NO_LINKS, BENEATH, IN_ROOT, BENEATH | NO_LINKS};
  for (size_t way = 0; way < sizeof resolves / sizeof *resolves; way++)
    for (size_t at = 0; at < sizeof paths / sizeof *paths; at++) {
      // Some machines have a file system of its own at /tmp.
      if (resolves[way] == NO_XDEV && (!strcmp(paths[at], "absolute") || !strcmp(paths[at], "far"))) continue;
      printf("%d %s ", resolves[way], paths[at]);
      TRY(open_how(box, paths[at], O_RDONLY, 0, resolves[way]));
    }
  TRY(open_how(box, "near", O_PATH | O_NOFOLLOW, 0, NO_LINKS));
  TRY(open_how(box, "near", O_NOFOLLOW, 0, NO_LINKS));
  TRY(open_how(box, "near/", O_PATH | O_NOFOLLOW, 0, NO_LINKS));
  // New files.
  TRY(open_how(box, "up", O_CREAT | O_RDWR, 0600, BENEATH));
  TRY(open_how(box, "../new", O_CREAT | O_RDWR, 0600, BENEATH));
  TRY(open_how(box, "dangling", O_CREAT | O_RDWR, 0600, NO_LINKS));
  TRY(open_how(box, "dangling", O_CREAT | O_RDWR, 0600, BENEATH));
  TRY(open_how(box, "/in/other", O_CREAT | O_EXCL | O_RDWR, 0600, IN_ROOT));
  TRY(open_how(box, "absolute", O_CREAT | O_RDWR, 0600, IN_ROOT));
  TRY(open_how(box, "..", O_TMPFILE | O_RDWR, 0600, BENEATH));
  TRY(open_how(box, "..", O_TMPFILE | O_RDWR, 0600, IN_ROOT));
  show_folder("box/in");
  // Only what needs no disk.
  TRY(open_how(box, "file", O_RDONLY, 0, CACHED));
  TRY(open_how(box, "file", O_RDWR | O_TRUNC, 0, CACHED));
  TRY(open_how(box, "file", O_RDWR | O_CREAT, 0600, CACHED));
  TRY(open_how(box, "in", O_RDWR | O_TMPFILE, 0600, CACHED));
  // Mounted file systems, and links of /proc.
  int pipes[2];
  TRY(pipe(pipes));
  char name[64];
  snprintf(name, sizeof name, "/proc/self/fd/%d", pipes[0]);
  int root = open("/", O_PATH);
  TRY(open_how(root, "proc", O_RDONLY, 0, NO_XDEV));
  TRY(open_how(root, "proc/version", O_RDONLY, 0, NO_XDEV));
  TRY(open_how(AT_FDCWD, "/proc/version", O_RDONLY, 0, NO_XDEV));
  TRY(open_how(AT_FDCWD, "/proc/self/cwd", O_RDONLY, 0, 0));
  TRY(open_how(AT_FDCWD, "/proc/self/cwd", O_RDONLY, 0, NO_MAGIC));
  TRY(open_how(AT_FDCWD, "/proc/self/cwd", O_PATH | O_NOFOLLOW, 0, NO_MAGIC));
  TRY(open_how(AT_FDCWD, "/proc/self/cwd/file", O_RDONLY, 0, NO_MAGIC));
  TRY(open_how(AT_FDCWD, "/proc/self/status", O_RDONLY, 0, NO_MAGIC));
  TRY(open_how(AT_FDCWD, "/proc/self/status", O_RDONLY, 0, NO_LINKS));
  TRY(open_how(AT_FDCWD, name, O_RDONLY, 0, 0));
  TRY(open_how(AT_FDCWD, name, O_RDONLY, 0, NO_MAGIC));
  TRY(open_how(AT_FDCWD, name, O_RDONLY, 0, NO_LINKS));
  TRY(open_how(root, name, O_RDONLY, 0, IN_ROOT));
  TRY(open_how(root, name + 1, O_RDONLY, 0, BENEATH));
  int proc = open("/proc", O_PATH);
  TRY(open_how(proc, "..", O_RDONLY, 0, NO_XDEV));
  TRY(open_how(proc, "self/status", O_RDONLY, 0, NO_XDEV));
  TRY(open_how(proc, "self/cwd", O_RDONLY, 0, NO_XDEV));
  TRY(open_how(proc, "self/fd", O_RDONLY, 0, NO_XDEV));
  TRY(open_how(proc, name + 6, O_RDONLY, 0, NO_XDEV));
  TRY(open_how(proc, "self/status", O_RDONLY, 0, BENEATH));
  TRY(open_how(proc, "/self/status", O_RDONLY, 0, IN_ROOT));
  TRY(open_how(proc, "self/exe", O_RDONLY, 0, BENEATH));
  return 0;
}

// exec: one two
#include "files.h"
#include <sys/vfs.h>

static long slurp(const char *path, char *text, long size) {
  int fd = open(path, O_RDONLY);
  if (fd < 0) {
    printf("%s: %s\n", path, error_name(errno));
    return -1;
  }
  long total = 0, count;
  while ((count = read(fd, text + total, size - 1 - total)) > 0) total += count;
  text[total] = 0;
  close(fd);
  return total;
}

static int has_line(const char *path, const char *start) {
  static char text[65536];
  if (slurp(path, text, sizeof text) < 0) return -1;
  for (char *line = text; line; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    if (!strncmp(line, start, strlen(start))) return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  char text[4096], path[256];
  (void)argc;
  long count = slurp("/proc/self/cmdline", text, sizeof text);
  char *name = strrchr(text, '/');
  printf("%d %s %s\n", name != NULL, text + strlen(text) + 1, text + count - 4);
  printf("%d\n", !strcmp(text, argv[0]));
  count = readlink("/proc/self/exe", text, sizeof text);
  TRY(count > 0);
  TRY(access("/proc/self/exe", X_OK));
  TRY(open("/proc/self/exe", O_RDONLY) >= 0);
  count = readlink("/proc/self", text, sizeof text);
  text[count < 0 ? 0 : count] = 0;
  TRY(atoi(text) == getpid());
  start_in("files-proc");
  memset(text, 0, sizeof text);
  TRY(readlink("/proc/self/cwd", text, sizeof text));
  printf("%s\n", text);
  TRY(has_line("/proc/self/status", "Pid:"));
  TRY(has_line("/proc/self/status", "Uid:"));
  TRY(has_line("/proc/self/status", "VmRSS:"));
  TRY(has_line("/proc/self/status", "Threads:\t1"));
  TRY(has_line("/proc/self/limits", "Max open files"));
  TRY(has_line("/proc/meminfo", "MemTotal:"));
  TRY(has_line("/proc/cpuinfo", "processor"));
  TRY(has_line("/proc/stat", "cpu "));
  TRY(has_line("/proc/filesystems", "nodev\tproc"));
  TRY(has_line("/proc/sys/kernel/ostype", "Linux"));
  TRY(has_line("/proc/version", "Linux version"));
  TRY(slurp("/proc/sys/net/core/somaxconn", text, sizeof text) > 0);
  TRY(atoi(text) > 0);
  TRY(slurp("/proc/self/maps", text, sizeof text) >= 0);
  TRY(slurp("/proc/loadavg", text, sizeof text) > 0);
  double load;
  TRY(sscanf(text, "%lf", &load));
  TRY(slurp("/proc/uptime", text, sizeof text) > 0);
  double up;
  TRY(sscanf(text, "%lf", &up));
  TRY(slurp("/proc/self/stat", text, sizeof text) > 0);
  TRY(atoi(text) == getpid());
  char *end = strrchr(text, ')');
  int parent = 0;
  char state = 0;
  TRY(sscanf(end + 1, " %c %d", &state, &parent));
  TRY(state == 'R' && parent == getppid());
  TRY(slurp("/proc/self/statm", text, sizeof text) > 0);
  TRY(open("/proc/none", O_RDONLY));
  TRY(open("/proc/99999999", O_RDONLY));
  TRY(open("/proc/new", O_CREAT | O_RDWR, 0600));
  TRY(open("/proc/uptime", O_RDONLY) >= 0);
  struct stat status;
  TRY(stat("/proc/self/status", &status));
  printf("%o %ld\n", status.st_mode, (long)status.st_size);
  TRY(stat("/proc/self/fd", &status));
  TRY(S_ISDIR(status.st_mode));
  TRY(lstat("/proc/self", &status));
  TRY(S_ISLNK(status.st_mode));
  // What is open.
  make_file("file", "text");
  int fd = open("file", O_RDONLY);
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  memset(text, 0, sizeof text);
  TRY(readlink(path, text, sizeof text));
  printf("%s\n", text);
  TRY(stat(path, &status));
  printf("%ld\n", (long)status.st_size);
  TRY(lstat(path, &status));
  TRY(S_ISLNK(status.st_mode));
  int ends[2];
  pipe(ends);
  snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
  memset(text, 0, sizeof text);
  readlink(path, text, sizeof text);
  printf("%.6s\n", text);
  snprintf(path, sizeof path, "/proc/self/fd/%d", ends[1]);
  int again = open(path, O_WRONLY);
  TRY(write(again, "through", 7));
  memset(text, 0, sizeof text);
  TRY(read(ends[0], text, sizeof text));
  printf("%s\n", text);
  TRY(close(fd));
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  TRY(readlink(path, text, sizeof text));
  // Of another process.
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    read(ends[0], &byte, 1);
    _exit(0);
  }
  snprintf(path, sizeof path, "/proc/%d/status", child);
  TRY(has_line(path, "PPid:"));
  snprintf(path, sizeof path, "/proc/%d/cwd", child);
  memset(text, 0, sizeof text);
  TRY(readlink(path, text, sizeof text));
  printf("%s\n", text);
  write(ends[1], "x", 1);
  waitpid(child, NULL, 0);
  TRY(open(path, O_RDONLY));
  snprintf(path, sizeof path, "/proc/%d", child);
  TRY(stat(path, &status));
  // /etc and what is usually there.
  TRY(has_line("/etc/passwd", "root:x:0:0:"));
  TRY(has_line("/etc/group", "root:x:0:"));
  TRY(has_line("/etc/hosts", "127.0.0.1"));
  TRY(access("/bin", X_OK));
  TRY(access("/usr/bin", X_OK));
  TRY(access("/var/tmp", W_OK));
  TRY(access("/run", X_OK));
  TRY(access("/home", X_OK));
  TRY(access("/dev/shm", W_OK));
  TRY(stat("/tmp", &status));
  printf("%o\n", status.st_mode);
  struct statfs fs;
  TRY(statfs("/proc/self", &fs));
  printf("%lx\n", (long)fs.f_type);
  return 0;
}

// What the tests of files share: each case prints the call and what came back.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *error_name(int error) {
  switch (error) {
#define NAME(e) case e: return #e;
    NAME(EPERM) NAME(ENOENT) NAME(ESRCH) NAME(EINTR) NAME(EIO) NAME(ENXIO) NAME(EBADF) NAME(EAGAIN) NAME(ENOMEM)
    NAME(EACCES) NAME(EFAULT) NAME(EBUSY) NAME(EEXIST) NAME(EXDEV) NAME(ENODEV) NAME(ENOTDIR) NAME(EISDIR)
    NAME(EINVAL) NAME(EMFILE) NAME(ENOTTY) NAME(EFBIG) NAME(ENOSPC) NAME(ESPIPE) NAME(EROFS) NAME(EMLINK)
    NAME(EPIPE) NAME(ERANGE) NAME(EDEADLK) NAME(ENAMETOOLONG) NAME(ENOSYS) NAME(ENOTEMPTY) NAME(ELOOP)
    NAME(EOVERFLOW) NAME(EOPNOTSUPP) NAME(ETXTBSY) NAME(ENOEXEC) NAME(E2BIG) NAME(ECHILD)
#undef NAME
  }
  return "another error";
}

#define TRY(call)                                                                                  \
  do {                                                                                             \
    errno = 0;                                                                                     \
    long result_ = (long)(call);                                                                   \
    if (result_ == -1)                                                                             \
      printf("%s: %s\n", #call, error_name(errno));                                                \
    else                                                                                           \
      printf("%s = %ld\n", #call, result_);                                                        \
    fflush(stdout);                                                                                \
  } while (0)

// Removes a folder with all that lies in it.
__attribute__((unused)) static void remove_all(const char *path) {
  struct stat status;
  if (lstat(path, &status) != 0) return;
  if (S_ISDIR(status.st_mode)) {
    chmod(path, 0700);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
      if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
      char below[1024];
      snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
      remove_all(below);
    }
    if (dir) closedir(dir);
    rmdir(path);
  } else {
    unlink(path);
  }
}

// An empty folder of this name below /tmp, which becomes the working directory.
__attribute__((unused)) static void start_in(const char *name) {
  static char path[256];
  umask(022);
  snprintf(path, sizeof path, "/tmp/everett-%s", name);
  remove_all(path);
  if (mkdir(path, 0755) != 0 || chdir(path) != 0) {
    perror(path);
    exit(1);
  }
}

__attribute__((unused)) static void make_file(const char *path, const char *text) {
  int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) perror(path);
  close(fd);
}

__attribute__((unused)) static void show_file(const char *path) {
  char text[256];
  int fd = open(path, O_RDONLY);
  if (fd < 0) {
    printf("%s: %s\n", path, error_name(errno));
    return;
  }
  long count = read(fd, text, sizeof text - 1);
  text[count < 0 ? 0 : count] = 0;
  printf("%s holds \"%s\"\n", path, text);
  close(fd);
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

// The names in a folder, sorted, with their types.
__attribute__((unused)) static void show_folder(const char *path) {
  DIR *dir = opendir(path);
  if (!dir) {
    printf("%s: %s\n", path, error_name(errno));
    return;
  }
  char *names[512];
  int count = 0;
  struct dirent *entry;
  while ((entry = readdir(dir)) && count < 512) {
    char line[300];
    snprintf(line, sizeof line, "%s(%d)", entry->d_name, entry->d_type);
    names[count++] = strdup(line);
  }
  closedir(dir);
  qsort(names, count, sizeof *names, by_name);
  printf("%s:", path);
  for (int at = 0; at < count; at++) {
    printf(" %s", names[at]);
    free(names[at]);
  }
  printf("\n");
}

__attribute__((unused)) static void show_status(const char *path) {
  struct stat status;
  if (lstat(path, &status) != 0) {
    printf("%s: %s\n", path, error_name(errno));
    return;
  }
  printf("%s: mode %o, links %ld, uid %d, gid %d", path, status.st_mode, (long)status.st_nlink,
         status.st_uid, status.st_gid);
  if (!S_ISDIR(status.st_mode)) printf(", size %ld", (long)status.st_size);
  printf("\n");
}

// The child does `work` and the parent waits for it.
#define IN_CHILD(work)                                                                             \
  do {                                                                                             \
    fflush(stdout);                                                                                \
    pid_t child_ = fork();                                                                         \
    if (child_ == 0) {                                                                             \
      work;                                                                                        \
      fflush(stdout);                                                                              \
      _exit(0);                                                                                    \
    }                                                                                              \
    int status_;                                                                                   \
    waitpid(child_, &status_, 0);                                                                  \
    if (status_ != 0) printf("child ended with %x\n", status_);                                    \
  } while (0)

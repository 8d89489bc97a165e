// Interposes fsync, fdatasync and syncfs by LD_PRELOAD: keeps what a disk is known to have after a loss of power, in the
// folder EVERETT_TEST_SYNCED. A file is kept under its inode and time of birth; for a folder, its list of names is.
// Power is lost at the call with the number EVERETT_TEST_SYNCS, or after the call with the number
// EVERETT_TEST_CHECKPOINTS among those of folders that have a checkpoint: the process is killed.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int name_of(int folder, const char *path, int flags, char *name, size_t size, int *is_folder) {
  struct statx seen;
  if (statx(folder, path, flags | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &seen) != 0)
    return -1;
  *is_folder = S_ISDIR(seen.stx_mode);
  snprintf(name, size, "%llu-%lld.%u", (unsigned long long)seen.stx_ino, (long long)seen.stx_btime.tv_sec,
           seen.stx_btime.tv_nsec);
  return 0;
}

static int copy_list(int fd, FILE *to) {
  int has_checkpoint = 0;
  char path[64], name[100];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  DIR *folder = opendir(path);
  if (!folder)
    abort();
  for (struct dirent *entry; (entry = readdir(folder));) {
    int is_folder;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    has_checkpoint |= strcmp(entry->d_name, "checkpoint.json") == 0;
    // It may have gone since.
    if (name_of(fd, entry->d_name, 0, name, sizeof name, &is_folder) == 0)
      fprintf(to, "%s %s %s\n", is_folder ? "folder" : "file", name, entry->d_name);
  }
  closedir(folder);
  return has_checkpoint;
}

static int copy_bytes(int fd, FILE *to) {
  char path[64], bytes[65536];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  FILE *from = fopen(path, "r");
  if (!from)
    abort();
  for (size_t count; (count = fread(bytes, 1, sizeof bytes, from)) > 0;)
    fwrite(bytes, 1, count, to);
  fclose(from);
  return 0;
}

static atomic_long calls, checkpoints;

// The call with this number has come.
static int is_last(const char *variable, long before) {
  const char *last = getenv(variable);
  return last && before >= atol(last);
}

// Notes what a file or a folder holds before it is synchronised, which is what it holds afterwards at least.
// Returns whether the folder has a checkpoint.
static int note(int fd, char *unfinished, char *finished, size_t size) {
  const char *folder = getenv("EVERETT_TEST_SYNCED");
  char name[100];
  int is_folder;
  if (is_last("EVERETT_TEST_SYNCS", atomic_fetch_add(&calls, 1)))
    kill(getpid(), SIGKILL);
  if (!folder || name_of(fd, "", AT_EMPTY_PATH, name, sizeof name, &is_folder) != 0)
    abort();
  snprintf(unfinished, size, "%s/unfinished-%ld", folder, syscall(SYS_gettid));
  snprintf(finished, size, "%s/%s", folder, name);
  FILE *to = fopen(unfinished, "w");
  if (!to)
    abort();
  int has_checkpoint = (is_folder ? copy_list : copy_bytes)(fd, to);
  fclose(to);
  return has_checkpoint;
}

static void keep(const char *unfinished, const char *finished, int has_checkpoint) {
  if (rename(unfinished, finished) != 0)
    abort();
  if (has_checkpoint && is_last("EVERETT_TEST_CHECKPOINTS", atomic_fetch_add(&checkpoints, 1) + 1))
    kill(getpid(), SIGKILL);
}

static int sync_one(int fd, const char *real) {
  char unfinished[4200], finished[4200];
  int has_checkpoint = note(fd, unfinished, finished, sizeof finished);
  int (*sync)(int) = (int (*)(int))dlsym(RTLD_NEXT, real);
  int result = sync(fd);
  if (result == 0)
    keep(unfinished, finished, has_checkpoint);
  return result;
}

int fsync(int fd) { return sync_one(fd, "fsync"); }
int fdatasync(int fd) { return sync_one(fd, "fdatasync"); }

// A file system is synchronised in any order. Everett passes the folder of a run, and nothing outside it is of interest.
// The power may go when a part is done.
int syncfs(int fd) {
  char path[64], unfinished[4200], finished[4200];
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  DIR *folder = opendir(path);
  if (!folder)
    abort();
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
      continue;
    int below = openat(fd, entry->d_name, O_RDONLY | O_NOFOLLOW);
    if (below < 0)
      continue;
    if (entry->d_type == DT_DIR) {
      syncfs(below);
    } else {
      note(below, unfinished, finished, sizeof finished);
      keep(unfinished, finished, 0);
    }
    close(below);
  }
  closedir(folder);
  int has_checkpoint = note(fd, unfinished, finished, sizeof finished);
  keep(unfinished, finished, has_checkpoint);
  return 0;
}

// exec:
// Each capability about files alone, setfsuid, and the bits that changes of owner take or new files get.
#include "files.h"
#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

static void set_capabilities(unsigned set) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2] = {{set, set, 0}, {0, 0, 0}};
  TRY(syscall(SYS_capset, &header, data));
}

static unsigned effective(void) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  syscall(SYS_capget, &header, data);
  return data[0].effective;
}

static int opened(const char *path, int flags) {
  int fd = open(path, flags), error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return fd < 0 ? -1 : 0;
}

static void make(const char *name, uid_t user, gid_t group, int mode) {
  close(open(name, O_CREAT | O_WRONLY, 0600));
  chown(name, user, group);
  chmod(name, mode);
}

static int mode_of(const char *name) {
  struct stat status;
  return lstat(name, &status) ? -1 : (int)status.st_mode;
}

// Everything that one of the capabilities permits, on files of another user.
static void attempt(void) {
  printf("on files of others\n");
  TRY(opened("closed", O_RDONLY));
  TRY(opened("closed", O_WRONLY));
  TRY(opened("folder", O_RDONLY));
  TRY(opened("folder/in", O_RDONLY));
  TRY(mkdir("folder/new", 0700));
  TRY(access("closed", R_OK));
  TRY(faccessat(AT_FDCWD, "closed", R_OK, AT_EACCESS));
  TRY(faccessat(AT_FDCWD, "closed", X_OK, AT_EACCESS));
  TRY(faccessat(AT_FDCWD, "folder", X_OK, AT_EACCESS));
  TRY(chmod("mine", 0604));
  TRY(utimes("mine", NULL));
  TRY(opened("mine", O_RDONLY | O_NOATIME));
  TRY(unlink("sticky/file"));
  TRY(chown("set", -1, -1));
  printf("%o\n", mode_of("set"));
  TRY(chown("mine", 1000, 1000));
}

static void as_user_with(int capability) {
  make("closed", 9, 9, 0);
  make("mine", 9, 9, 0644);
  make("set", 9, 9, 06755);
  mkdir("folder", 0700);
  make("folder/in", 9, 9, 0644);
  chown("folder", 9, 9);
  chmod("folder", 0);
  mkdir("sticky", 01777);
  chmod("sticky", 01777);
  make("sticky/file", 9, 9, 0644);
  printf("with %d\n", capability);
  fflush(stdout);
  if (!fork()) {
    prctl(PR_SET_KEEPCAPS, 1);
    setgroups(0, NULL);
    setresgid(1000, 1000, 1000);
    setresuid(1000, 1000, 1000);
    set_capabilities(capability < 0 ? 0 : 1u << capability);
    attempt();
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
  unlink("folder/in");
  rmdir("folder/new");
  rmdir("folder");
}

static void writer(int capability, const char *what) {
  make("set", 1000, 1000, 06777);
  fflush(stdout);
  if (!fork()) {
    prctl(PR_SET_KEEPCAPS, 1);
    setresuid(2000, 2000, 2000);
    set_capabilities(capability < 0 ? 0 : 1u << capability);
    int fd = open("set", O_WRONLY);
    TRY(write(fd, "x", 1));
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
  printf("%s leaves %o\n", what, mode_of("set"));
}

int main(void) {
  char folder[] = "/tmp/privileges-XXXXXX";
  umask(022);
  if (!mkdtemp(folder) || chmod(folder, 0777) || chdir(folder)) return 1;
  for (int capability = -1; capability <= 4; capability++) as_user_with(capability);
  writer(-1, "a writer");
  writer(4, "CAP_FSETID");

  // A new file in a folder that passes on its group: only members give away the rights of that group.
  mkdir("group", 02777);
  chown("group", 0, 5);
  chmod("group", 02777);
  fflush(stdout);
  if (!fork()) {
    gid_t five = 5;
    setgroups(0, NULL);
    setresgid(1000, 1000, 1000);
    if (!fork()) {
      setresuid(1000, 1000, 1000);
      close(open("group/other", O_CREAT | O_RDWR, 02775));
      mknod("group/fifo", S_IFIFO | 02777, 0);
      close(open("group/plain", O_CREAT | O_RDWR, 02765));
      mkdir("group/folder", 0755);
      _exit(0);
    }
    wait(NULL);
    setgroups(1, &five);
    setresuid(1000, 1000, 1000);
    close(open("group/member", O_CREAT | O_RDWR, 02775));
    _exit(0);
  }
  wait(NULL);
  const char *made[] = {"group/other", "group/fifo", "group/plain", "group/folder", "group/member"};
  for (int i = 0; i < 5; i++) printf("%s %o\n", made[i], mode_of(made[i]));

  // The user that the file system sees.
  make("closed", 9, 9, 0600);
  fflush(stdout);
  if (!fork()) {
    const unsigned about_files = 0x1f | 1 << 9 | 1 << 27;
    TRY(setfsuid(9));
    TRY(setfsuid(-1));
    printf("left %x\n", effective() & about_files);
    TRY(opened("closed", O_RDONLY));
    TRY(chown("closed", 10, 10));
    TRY(setfsgid(7));
    mkdir("own", 0777);
    struct stat status;
    stat("own", &status);
    printf("%d %d %d\n", status.st_uid, status.st_gid, geteuid());
    TRY(setfsuid(0));
    printf("again %x\n", effective() & about_files);
    TRY(setresuid(8, 8, 8));
    TRY(setfsuid(9));
    TRY(setfsuid(-1));
    TRY(setfsgid(-1));
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);

  // Orders of checks.
  mkdir("root", 0755);
  mkdir("root/inner", 0755);
  fflush(stdout);
  if (!fork()) {
    setresuid(1000, 1000, 1000);
    TRY(unlink("root/inner/"));
    TRY(unlink("root/inner"));
    struct timespec wrong[2] = {{0, 1000000000}, {0, 0}};
    TRY(utimensat(AT_FDCWD, "root/none", wrong, 0));
    TRY(utimensat(AT_FDCWD, "root/inner", wrong, 0));
    TRY(prctl(PR_SET_SECUREBITS, 1));
    int path = open("root", O_PATH);
    TRY((long)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, path, 0));
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
  return 0;
}

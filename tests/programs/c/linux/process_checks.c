// exec:
// What calls about processes refuse, and what they tell: pidfds, clone3, signals of a dead parent, poll, /proc.
#include "files.h"
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static long clone3(uint64_t flags, uint64_t signal) {
  uint64_t arguments[8] = {flags, 0, 0, 0, signal};
  long pid = syscall(435, arguments, sizeof arguments);
  if (pid == 0) _exit(0);
  return pid;
}

static void status(const char *name) {
  char line[256];
  FILE *file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file))
    if (!strncmp(line, name, strlen(name))) printf("%s", line);
  fclose(file);
}

static void show(const char *path) {
  char text[256];
  int fd = open(path, O_RDONLY);
  long count = fd < 0 ? -1 : read(fd, text, sizeof text);
  printf("%s: %.*s|\n", path, (int)(count < 0 ? 0 : count), text);
  close(fd);
}

int main(void) {
  pid_t child = fork();
  if (!child) {
    pause();
    _exit(0);
  }
  int fd = syscall(434, child, 0);
  char byte;
  printf("mode %d\n", fcntl(fd, F_GETFL) & O_ACCMODE);
  TRY(read(fd, &byte, 1));
  TRY(write(fd, &byte, 1));
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_code = SI_QUEUE;
  info.si_signo = SIGUSR1;
  TRY(syscall(424, fd, SIGUSR2, &info, 0));
  TRY(syscall(424, fd, SIGKILL, NULL, 0));
  TRY(waitpid(child, NULL, 0) == child);

  TRY(clone3(CLONE_SIGHAND, SIGCHLD));
  TRY(clone3(CLONE_THREAD, 0));
  TRY(clone3(CLONE_NEWNS | CLONE_FS, SIGCHLD));

  int ready[2];
  pipe(ready);
  fflush(stdout);
  pid_t parent = fork();
  if (!parent) {
    pid_t own = getpid();
    if (!fork()) {
      sigset_t mask;
      sigemptyset(&mask);
      sigaddset(&mask, SIGUSR2);
      sigprocmask(SIG_BLOCK, &mask, NULL);
      prctl(PR_SET_PDEATHSIG, SIGUSR2);
      write(ready[1], "r", 1);
      sigwaitinfo(&mask, &info);
      printf("signal %d code %d of the parent %d\n", info.si_signo, info.si_code, info.si_pid == own);
      fflush(stdout);
      write(ready[1], "e", 1);
      _exit(0);
    }
    read(ready[0], &byte, 1);
    _exit(0);
  }
  waitpid(parent, NULL, 0);
  read(ready[0], &byte, 1);

  struct rlimit limit;
  struct pollfd none[20];
  for (int i = 0; i < 20; i++) none[i] = (struct pollfd){-1, POLLIN, 0};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 12;
  setrlimit(RLIMIT_NOFILE, &limit);
  TRY(poll(none, 12, 0));
  TRY(poll(none, 13, 0));

  gid_t groups[] = {5, 3};
  setgroups(0, NULL);
  status("Groups:");
  setgroups(2, groups);
  TRY(getgroups(2, groups));
  printf("%d %d\n", groups[0], groups[1]);
  status("Groups:");
  setfsuid(9);
  setfsgid(8);
  status("Uid:");
  status("Gid:");
  setfsuid(0);
  status("NoNewPrivs:");
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  status("NoNewPrivs:");
  show("/proc/self/personality");
  show("/proc/self/timerslack_ns");
  show("/proc/sys/kernel/overflowuid");
  return 0;
}

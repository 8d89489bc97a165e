// exec:
// Process 1 as calls about processes see it: all may look at it, and only root may change it.
#include "files.h"
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static void looks(void) {
  struct sched_param parameter = {.sched_priority = 7};
  struct rlimit limit;
  struct timespec interval;
  cpu_set_t processors;
  clockid_t clock;
  TRY(kill(1, 0));
  TRY(getsid(1) >= 0);
  TRY(getpgid(1) >= 0);
  TRY(getpriority(PRIO_PROCESS, 1));
  TRY(sched_getscheduler(1));
  TRY(sched_getparam(1, &parameter));
  printf("priority %d\n", parameter.sched_priority);
  TRY(sched_rr_get_interval(1, &interval));
  TRY(sched_getaffinity(1, sizeof processors, &processors) > 0 ? 0 : -1);
  TRY(prlimit(1, RLIMIT_NOFILE, NULL, &limit));
  printf("clock %d\n", clock_getcpuclockid(1, &clock));
  TRY(syscall(SYS_tgkill, 1, 1, 0));
  TRY(syscall(SYS_tkill, 1, 0));
  TRY(setpgid(1, 1));
  TRY(waitpid(1, NULL, WNOHANG));
}

static void changes(void) {
  struct sched_param none = {.sched_priority = 0};
  struct rlimit limit = {5, 5};
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(0, &processors);
  TRY(kill(1, SIGUSR2));
  TRY(sigqueue(1, SIGUSR2, (union sigval){.sival_int = 3}));
  TRY(setpriority(PRIO_PROCESS, 1, 5));
  TRY(sched_setscheduler(1, SCHED_OTHER, &none));
  TRY(sched_setscheduler(1, SCHED_FIFO, &none));
  TRY(sched_setparam(1, &none));
  TRY(sched_setaffinity(1, sizeof processors, &processors));
  TRY(prlimit(1, RLIMIT_CORE, &limit, NULL));
  TRY(syscall(SYS_tgkill, 1, 1, SIGUSR2));
}

static void descriptor(void) {
  int fd = syscall(434, 1, 0);
  struct pollfd entry = {fd, POLLIN, 0};
  siginfo_t info;
  TRY(fd >= 0 ? 0 : -1);
  TRY(poll(&entry, 1, 0));
  TRY(syscall(424, fd, 0, NULL, 0));
  TRY(syscall(424, fd, SIGUSR2, NULL, 0));
  TRY(waitid(3, fd, &info, WEXITED));
  TRY(syscall(438, fd, 0, 0));
  TRY(syscall(438, fd, 0, 1));
  close(fd);
}

static void can_read(const char *path) {
  char text[64];
  int fd = open(path, O_RDONLY);
  TRY(fd < 0 ? -1 : 0);
  if (fd >= 0) TRY(read(fd, text, sizeof text) > 0);
  close(fd);
}

static void files(void) {
  char text[64];
  TRY(access("/proc/1", F_OK));
  can_read("/proc/1/stat");
  can_read("/proc/1/status");
  can_read("/proc/1/comm");
  can_read("/proc/1/cmdline");
  can_read("/proc/1/environ");
  TRY(readlink("/proc/1/cwd", text, sizeof text));
  TRY(readlink("/proc/1/exe", text, sizeof text));
  TRY(readlink("/proc/1/root", text, sizeof text));
  TRY(open("/proc/1/cwd/tmp", O_RDONLY));
  TRY(readlink("/proc/self/cwd", text, sizeof text));
}

int main(void) {
  start_in("init");
  fflush(stdout);
  TRY(getpgid(1) == getpgrp());
  TRY(setgid(65534));
  TRY(setuid(65534));
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  looks();
  changes();
  descriptor();
  files();
  // The processes of init outlive their parents, and go away when they exit.
  int ends[2];
  pipe(ends);
  pid_t parent = fork();
  if (!parent) {
    pid_t own = getpid();
    if (!fork()) {
      // Where there is one, another process takes the place of init.
      while (getppid() == own) usleep(1000);
      write(ends[1], "x", 1);
      _exit(0);
    }
    _exit(0);
  }
  waitpid(parent, NULL, 0);
  char byte;
  TRY(read(ends[0], &byte, 1));
  return 0;
}

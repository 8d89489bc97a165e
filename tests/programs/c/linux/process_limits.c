// exec:
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static void result(const char *what, long value) {
  printf("%s %ld %s\n", what, value, value < 0 ? strerror(errno) : "");
}

static volatile int exceeded;
static void note(int signal) {
  exceeded++;
  (void)signal;
}

int main(void) {
  struct rlimit limit, old;
  result("getrlimit", getrlimit(RLIMIT_NOFILE, &old));
  result("bad", getrlimit(99, &limit));
  limit = (struct rlimit){20, 10};
  result("above", setrlimit(RLIMIT_NOFILE, &limit));
  limit = (struct rlimit){10, 20};
  result("set", setrlimit(RLIMIT_NOFILE, &limit));
  getrlimit(RLIMIT_NOFILE, &limit);
  printf("is %lu %lu\n", (unsigned long)limit.rlim_cur, (unsigned long)limit.rlim_max);
  int last = 0, fds[32], count = 0;
  for (;;) {
    int fd = dup(1);
    if (fd < 0)
      break;
    fds[count++] = fd;
    last = fd;
  }
  printf("last %d %s\n", last, strerror(errno));
  result("open", open("/dev/null", O_RDONLY));
  int ends[2];
  result("pipe", pipe(ends));
  result("dup2", dup2(1, 10));
  result("fcntl", fcntl(1, F_DUPFD, 10));
  result("socket-like", fcntl(1, F_DUPFD, 5));
  limit.rlim_cur = 5;
  result("lower", setrlimit(RLIMIT_NOFILE, &limit));
  result("still open", write(fds[count - 1], "", 0));
  for (int i = 0; i < count; i++)
    close(fds[i]);
  result("raise", prlimit(getpid(), RLIMIT_NOFILE, &(struct rlimit){15, 20}, &old));
  printf("was %lu\n", (unsigned long)old.rlim_cur);
  result("nobody", prlimit(999999, RLIMIT_NOFILE, 0, &old));

  // Files of a limited size.
  signal(SIGXFSZ, note);
  int file = open("limited", O_RDWR | O_CREAT | O_TRUNC, 0600);
  limit = (struct rlimit){10, RLIM_INFINITY};
  result("fsize", setrlimit(RLIMIT_FSIZE, &limit));
  result("write", write(file, "12345678", 8));
  result("partly", write(file, "12345678", 8));
  result("beyond", write(file, "1", 1));
  printf("signals %d\n", exceeded);
  result("inside", pwrite(file, "xx", 2, 0));
  char bytes[32];
  result("read", pread(file, bytes, sizeof bytes, 0));
  pid_t child = fork();
  int status;
  if (!child) {
    getrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_DFL);
    if (limit.rlim_cur == 10)
      pwrite(file, "1", 1, 50);
    _exit(1);
  }
  waitpid(child, &status, 0);
  printf("killed %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
  limit.rlim_cur = RLIM_INFINITY;
  setrlimit(RLIMIT_FSIZE, &limit);
  unlink("limited");

  char name[32] = "";
  result("name", prctl(PR_SET_NAME, "a name that is too long"));
  prctl(PR_GET_NAME, name);
  printf("%s\n", name);
  result("dumpable", prctl(PR_GET_DUMPABLE));
  result("set", prctl(PR_SET_DUMPABLE, 0));
  result("is", prctl(PR_GET_DUMPABLE));
  result("bad", prctl(PR_SET_DUMPABLE, 7));
  result("privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  result("bad", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
  result("set", prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  result("is", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
  result("keepcaps", prctl(PR_GET_KEEPCAPS));
  result("set", prctl(PR_SET_KEEPCAPS, 1));
  result("is", prctl(PR_GET_KEEPCAPS));
  result("death signal", prctl(PR_SET_PDEATHSIG, 99));
  result("unknown", prctl(123456));

  struct sched_param param = {0};
  result("policy", sched_getscheduler(0));
  int base = getpriority(PRIO_PROCESS, 0);
  result("nice", nice(3) - base);
  errno = 0;
  result("priority", getpriority(PRIO_PROCESS, 0) - base);
  result("set", setpriority(PRIO_PROCESS, 0, 50));
  result("is", getpriority(PRIO_PROCESS, getpid()));
  result("bad", setpriority(9, 0, 1));
  result("nobody", setpriority(PRIO_PROCESS, 999999, 1));
  child = fork();
  if (!child)
    _exit(getpriority(PRIO_PROCESS, 0));
  waitpid(child, &status, 0);
  printf("inherited %d\n", WEXITSTATUS(status));
  result("fifo max", sched_get_priority_max(SCHED_FIFO));
  result("fifo min", sched_get_priority_min(SCHED_FIFO));
  result("other max", sched_get_priority_max(SCHED_OTHER));
  result("bad", sched_get_priority_max(77));
  result("yield", sched_yield());
  (void)param;

  struct utsname names;
  result("uname", uname(&names));
  printf("%s %s\n", names.sysname, names.machine);
  result("personality", personality(0xffffffff));
  result("long name", sethostname(name, 65));
  return 0;
}

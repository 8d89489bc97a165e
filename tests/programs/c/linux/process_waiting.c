// exec:
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child_that(int code) {
  pid_t child = fork();
  if (!child)
    _exit(code);
  return child;
}

static void failed(const char *what, int result) { printf("%s %d %s\n", what, result, strerror(errno)); }

int main(void) {
  int status = 0;
  failed("no children", waitpid(-1, &status, 0));
  failed("no such child", waitpid(getpid(), &status, WNOHANG));
  failed("bad options", waitpid(-1, &status, 12345678));
  siginfo_t si;
  failed("waitid without kinds", waitid(P_ALL, 0, &si, WNOHANG));
  failed("waitid bad kind", waitid(9, 0, &si, WEXITED));
  failed("waitid none", waitid(P_ALL, 0, &si, WEXITED));

  pid_t child = child_that(300);
  pid_t got = waitpid(child, &status, 0);
  printf("own %d exit %d\n", got == child, WEXITSTATUS(status));
  child = child_that(3);
  memset(&si, 1, sizeof si);
  int waited = waitid(P_PID, child, &si, WEXITED | WNOWAIT);
  printf("waitid %d signal %d code %d status %d pid %d\n", waited, si.si_signo == SIGCHLD,
         si.si_code == CLD_EXITED, si.si_status, si.si_pid == child);
  printf("still there %d\n", kill(child, 0));
  waited = waitid(P_ALL, 0, &si, WEXITED);
  printf("waitid %d status %d\n", waited, si.si_status);
  failed("gone", waitpid(child, &status, 0));

  // Nothing to tell yet.
  int gate[2];
  pipe(gate);
  child = fork();
  if (!child) {
    char byte;
    close(gate[1]);
    read(gate[0], &byte, 1);
    _exit(9);
  }
  close(gate[0]);
  printf("not yet %d\n", waitpid(child, &status, WNOHANG));
  memset(&si, 1, sizeof si);
  waited = waitid(P_PID, child, &si, WEXITED | WNOHANG);
  printf("not yet %d signal %d pid %d\n", waited, si.si_signo, si.si_pid);
  close(gate[1]);
  struct rusage usage;
  memset(&usage, 1, sizeof usage);
  got = wait4(child, &status, 0, &usage);
  printf("wait4 %d exit %d seconds %ld\n", got == child, WEXITSTATUS(status), (long)usage.ru_utime.tv_sec);

  // Killed.
  child = fork();
  if (!child)
    for (;;)
      pause();
  kill(child, SIGTERM);
  waited = waitid(P_PID, child, &si, WEXITED | WNOWAIT);
  printf("code %d status %d\n", si.si_code == CLD_KILLED, si.si_status == SIGTERM);
  waitpid(child, &status, 0);
  printf("signaled %d by %d\n", WIFSIGNALED(status), WTERMSIG(status));

  // Groups.
  pid_t first = fork();
  if (!first) {
    setpgid(0, 0);
    _exit(1);
  }
  setpgid(first, first);
  pid_t second = fork();
  if (!second)
    _exit(2);
  waited = waitid(P_PGID, first, &si, WEXITED | WNOWAIT);
  printf("group of first %d\n", waited == 0 && si.si_pid == first);
  got = waitpid(0, &status, 0);
  printf("own group %d exit %d\n", got == second, WEXITSTATUS(status));
  got = waitpid(-first, &status, 0);
  printf("group of first %d exit %d\n", got == first, WEXITSTATUS(status));
  failed("group is gone", waitpid(-first, &status, 0));

  // Several, in any order.
  int sum = 0;
  for (int i = 1; i <= 5; i++)
    child_that(i);
  while (wait(&status) > 0)
    sum += WEXITSTATUS(status);
  printf("sum %d, then %s\n", sum, strerror(errno));

  // Orphans: the reaper takes them.
  printf("subreaper %d\n", prctl(PR_SET_CHILD_SUBREAPER, 1));
  int is_reaper = 0;
  prctl(PR_GET_CHILD_SUBREAPER, &is_reaper);
  printf("is %d\n", is_reaper);
  int answer[2];
  pipe(answer);
  child = fork();
  if (!child) {
    pid_t middle = getpid();
    if (!fork()) {
      while (getppid() == middle)
        usleep(1000);
      pid_t parent = getppid();
      write(answer[1], &parent, sizeof parent);
      _exit(44);
    }
    _exit(0);
  }
  got = waitpid(child, &status, 0);
  printf("middle %d exit %d\n", got == child, WEXITSTATUS(status));
  pid_t adopted = 0;
  read(answer[0], &adopted, sizeof adopted);
  printf("adopted by us %d\n", adopted == getpid());
  got = wait(&status);
  printf("orphan %d exit %d\n", got > 0 && got != child, WEXITSTATUS(status));

  // The death of a parent is told.
  child = fork();
  if (!child) {
    int start[2];
    char byte;
    pipe(start);
    if (!fork()) {
      prctl(PR_SET_PDEATHSIG, SIGUSR1);
      int asked = 0;
      prctl(PR_GET_PDEATHSIG, &asked);
      write(start[1], asked == SIGUSR1 ? "y" : "n", 1);
      for (;;)
        pause();
    }
    read(start[0], &byte, 1);
    _exit(byte);
  }
  waitpid(child, &status, 0);
  printf("asked %c\n", WEXITSTATUS(status));
  got = wait(&status);
  printf("died of it %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
  fflush(stdout);

  // vfork: the parent goes on when the child has ended.
  volatile int order = 1;
  child = vfork();
  if (!child)
    _exit(order + 10);
  order = 2;
  waitpid(child, &status, 0);
  printf("vfork %d\n", WEXITSTATUS(status));
  printf("rusage %d", getrusage(RUSAGE_CHILDREN, &usage));
  failed(" bad", getrusage(77, &usage));
  return 0;
}

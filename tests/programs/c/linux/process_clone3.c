// exec:
// Processes made with clone3, and what it refuses.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

struct arguments {
  uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
};

static long clone3(struct arguments *arguments, size_t size) { return syscall(435, arguments, size); }

static void handle(int signal) { (void)signal; }

static int handler_of(int signal) {
  struct sigaction action;
  sigaction(signal, 0, &action);
  return action.sa_handler == SIG_DFL ? 0 : action.sa_handler == SIG_IGN ? 1 : 2;
}

static void watched(void) {
  int fd = -1, status;
  struct arguments watch = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&fd, .exit_signal = SIGCHLD};
  long pid = clone3(&watch, sizeof watch);
  // The child does not have the descriptor.
  if (pid == 0) _exit(fcntl(fd, F_GETFD) < 0 ? 5 : 6);
  printf("pidfd %d, closed on exec %d, ", fd >= 0, fcntl(fd, F_GETFD));
  struct pollfd poller = {fd, POLLIN, 0};
  printf("ready %d, ", poll(&poller, 1, -1));
  siginfo_t info;
  waitid(3, fd, &info, WEXITED);
  printf("child %d, status %d\n", info.si_pid == pid, info.si_status);
  close(fd);
  pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0, &fd, 0, 0);
  if (pid == 0) _exit(7);
  waitid(3, fd, &info, WEXITED);
  printf("clone: child %d, status %d\n", info.si_pid == pid, info.si_status);
  close(fd);
  pid = syscall(SYS_clone, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, 0, &fd, 0, 0);
  printf("with a tid %d\n", pid < 0 ? errno : 0);
  printf("detached %d\n", syscall(SYS_clone, CLONE_PIDFD | 0x400000 | SIGCHLD, 0, &fd, 0, 0) < 0 ? errno : 0);
  watch = (struct arguments){.flags = CLONE_PIDFD | CLONE_PARENT_SETTID, .pidfd = (uintptr_t)&fd,
                             .parent_tid = (uintptr_t)&fd, .exit_signal = SIGCHLD};
  printf("at one place %d\n", clone3(&watch, 64) < 0 ? errno : 0);
  int tid = 0;
  watch.parent_tid = (uintptr_t)&tid;
  pid = clone3(&watch, 64);
  if (pid == 0) _exit(8);
  printf("both %d %d\n", tid == pid, fd >= 0);
  waitpid((pid_t)pid, &status, 0);
  close(fd);
  watch = (struct arguments){.flags = CLONE_PIDFD, .pidfd = 8, .exit_signal = SIGCHLD};
  printf("nowhere %d\n", clone3(&watch, 64) < 0 ? errno : 0);
}

static void without_handlers(void) {
  int status;
  signal(SIGUSR1, handle);
  signal(SIGUSR2, SIG_IGN);
  struct arguments clear = {.flags = 0x100000000, .exit_signal = SIGCHLD};
  long pid = clone3(&clear, sizeof clear);
  if (pid == 0) _exit(handler_of(SIGUSR1) * 10 + handler_of(SIGUSR2));
  waitpid((pid_t)pid, &status, 0);
  printf("actions %02d, here %d%d\n", WEXITSTATUS(status), handler_of(SIGUSR1), handler_of(SIGUSR2));
  clear.flags |= CLONE_SIGHAND | CLONE_VM;
  printf("shared and cleared %d\n", clone3(&clear, sizeof clear) < 0 ? errno : 0);
}

static void tids(void) {
  static int tid;
  int status;
  struct arguments told = {.flags = CLONE_CHILD_SETTID, .child_tid = (uintptr_t)&tid, .exit_signal = SIGCHLD};
  long pid = clone3(&told, 64);
  if (pid == 0) _exit(tid == getpid() ? 3 : 4);
  waitpid((pid_t)pid, &status, 0);
  printf("tid in the child %d, here %d\n", WEXITSTATUS(status), tid);
}

static void sizes(void) {
  struct {
    struct arguments known;
    uint64_t more[500];
  } newer = {.known.exit_signal = SIGCHLD};
  int status;
  long pid = clone3(&newer.known, 120);
  if (pid == 0) _exit(4);
  waitpid((pid_t)pid, &status, 0);
  printf("longer %d\n", WEXITSTATUS(status));
  newer.more[3] = 1;
  printf("not zero %d\n", clone3(&newer.known, 120) < 0 ? errno : 0);
  pid = clone3(&newer.known, 112);
  if (pid == 0) _exit(5);
  waitpid((pid_t)pid, &status, 0);
  printf("before it %d\n", WEXITSTATUS(status));
  newer.more[3] = 0;
  printf("too large %d\n", clone3(&newer.known, 4097) < 0 ? errno : 0);
}

static void signals(void) {
  int status;
  struct arguments quiet = {.exit_signal = 0};
  long pid = clone3(&quiet, 64);
  if (pid == 0) _exit(2);
  printf("not waited for %d", waitpid((pid_t)pid, &status, 0) < 0 ? errno : 0);
  printf(", but as a clone %d\n", waitpid((pid_t)pid, &status, __WCLONE) == pid);
  struct arguments parent = {.flags = CLONE_PARENT, .exit_signal = SIGCHLD};
  printf("sibling with a signal %d\n", clone3(&parent, 64) < 0 ? errno : 0);
}

int main(void) {
  struct arguments plain = {.exit_signal = SIGCHLD};
  int status = 0, value = 1;
  long pid = clone3(&plain, sizeof plain);
  if (pid == 0) {
    value = 2;
    _exit(value + 3);
  }
  printf("child %d", waitpid((pid_t)pid, &status, 0) == pid);
  printf(", ended with %d, value %d\n", WEXITSTATUS(status), value);
  int told = 0;
  struct arguments tell = {.flags = 0x100000, .parent_tid = (uint64_t)(uintptr_t)&told, .exit_signal = SIGCHLD};
  pid = clone3(&tell, 64);
  if (pid == 0) _exit(9);
  printf("told %d", told == pid);
  waitpid((pid_t)pid, &status, 0);
  printf(", ended with %d\n", WEXITSTATUS(status));
  printf("too small %d\n", clone3(&plain, 8) < 0 ? errno : 0);
  struct arguments wrong = {.exit_signal = 65};
  printf("no signal %d\n", clone3(&wrong, sizeof wrong) < 0 ? errno : 0);
  wrong = (struct arguments){.flags = SIGCHLD};
  printf("signal among flags %d\n", clone3(&wrong, sizeof wrong) < 0 ? errno : 0);
  wrong = (struct arguments){.exit_signal = SIGCHLD, .stack_size = 4096};
  printf("no stack %d\n", clone3(&wrong, sizeof wrong) < 0 ? errno : 0);
  watched();
  without_handlers();
  tids();
  sizes();
  signals();
  return 0;
}

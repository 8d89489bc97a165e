// exec:
// Processes made with clone3, and what it refuses.
#define _GNU_SOURCE
#include <errno.h>
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
  return 0;
}

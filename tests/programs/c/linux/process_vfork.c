// exec:
// A child of vfork shares the memory of its parent, until it exits or executes a program.
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int global;
static volatile int handled;
extern char **environ;

static int finish(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int work(void *argument) {
  *(volatile int *)argument += 1;
  global += 10;
  return 4;
}

static __attribute__((noinline)) int deep(int depth) {
  volatile int here[64];
  here[depth % 64] = depth;
  return depth == 0 ? here[0] : deep(depth - 1) + (here[depth % 64] != depth);
}

static void handler(int signal) { handled = signal; }

int main(int argc, char **argv) {
  if (argc > 1) {
    printf("executed, global %d\n", global);
    return 6;
  }
  volatile int local = 1;
  int *volatile heap = malloc(sizeof *heap);
  volatile int *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *heap = 1;
  pid_t pid = vfork();
  if (pid == 0) {
    local = 2;
    global = 3;
    *heap = 4;
    *mapped = 5;
    _exit(deep(20));
  }
  printf("%d %d %d %d, exit %d\n", local, global, *heap, *mapped, finish(pid));
  printf("deep %d\n", deep(10));

  // A file that cannot be executed: errno is that of the parent, too.
  char *const none[] = {"none", NULL};
  errno = 0;
  pid = vfork();
  if (pid == 0) {
    execve("/no/such/program", none, environ);
    local = errno;
    _exit(7);
  }
  printf("errno %d, exit %d\n", local == ENOENT, finish(pid));

  char *const words[] = {argv[0], "again", NULL};
  fflush(stdout);
  pid = vfork();
  if (pid == 0) {
    global = 20;
    execve("/proc/self/exe", words, environ);
    _exit(8);
  }
  global++;
  printf("executed with %d, global %d\n", finish(pid), global);

  // A block of the child is one of the parent.
  char *volatile text = NULL;
  pid = vfork();
  if (pid == 0) {
    text = strdup("from the child");
    _exit(0);
  }
  finish(pid);
  puts(text);
  free(text);

  // Two at a time: each child has a child.
  pid = vfork();
  if (pid == 0) {
    pid_t inner = vfork();
    if (inner == 0) {
      local = 30;
      _exit(1);
    }
    local += inner > 0;
    _exit(local);
  }
  printf("nested: exit %d, local %d\n", finish(pid), local);

  // What fork makes has a copy.
  pid = vfork();
  if (pid == 0) {
    pid_t copy = fork();
    if (copy == 0) {
      local = 99;
      _exit(0);
    }
    _exit(finish(copy));
  }
  printf("a copy: exit %d, local %d\n", finish(pid), local);

  static char stack[65536] __attribute__((aligned(16)));
  int counter = 5;
  global = 0;
  pid = clone(work, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, &counter);
  printf("clone: exit %d, counter %d, global %d\n", finish(pid), *(volatile int *)&counter, global);

  // The child gets a signal and handles it: dispositions are its own, variables are not.
  pid = vfork();
  if (pid == 0) {
    signal(SIGUSR1, handler);
    kill(getpid(), SIGUSR1);
    _exit(handled == SIGUSR1);
  }
  struct sigaction now;
  int status = finish(pid);
  sigaction(SIGUSR1, NULL, &now);
  printf("signal: exit %d, handled %d, own %d\n", status, handled == SIGUSR1, now.sa_handler != SIG_DFL);
  pid = vfork();
  if (pid == 0) {
    local = 77;
    kill(getpid(), SIGKILL);
  }
  printf("killed: %d, local %d\n", finish(pid), local);

  fflush(stdout);
  if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, words, environ) == 0) printf("spawned, exit %d\n", finish(pid));
  free(heap);
  return 0;
}

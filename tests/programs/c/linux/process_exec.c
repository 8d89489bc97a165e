// options: --program program
// exec: first
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char *self = "./program";

static void note(int signal) { (void)signal; }

// What a program finds when it starts.
static int show(int argc, char **argv) {
  printf("argc %d", argc);
  for (int i = 2; i < argc; i++)
    printf(" [%s]", argv[i]);
  for (char **e = environ; *e; e++)
    printf(" {%s}", *e);
  puts("");
  struct sigaction one, two;
  sigset_t blocked, pending;
  sigaction(SIGUSR1, 0, &one);
  sigaction(SIGUSR2, 0, &two);
  sigprocmask(SIG_BLOCK, 0, &blocked);
  sigpending(&pending);
  printf("handler reset %d ignored stays %d blocked %d pending %d\n", one.sa_handler == SIG_DFL,
         two.sa_handler == SIG_IGN, sigismember(&blocked, SIGHUP), sigismember(&pending, SIGHUP));
  stack_t stack;
  sigaltstack(0, &stack);
  printf("no alternate stack %d alarm %d umask %03o\n", stack.ss_flags == SS_DISABLE, alarm(0) > 0, umask(0));
  for (int fd = 3; fd < 9; fd++)
    if (fcntl(fd, F_GETFD) >= 0) {
      char bytes[8] = "";
      printf("open %d", fd);
      printf(" read %zd", read(fd, bytes, 3));
      printf(" %s\n", bytes);
    }
  fflush(stdout);
  return 40 + argc;
}

static int wait_for(pid_t child) {
  int status;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void failed(const char *what, int result) { printf("%s %d %s\n", what, result, strerror(errno)); }

static void *executes(void *pid) {
  char expected[16];
  sprintf(expected, "%d", *(int *)pid);
  execl(self, self, "pid", expected, (char *)0);
  return 0;
}
static void *runs(void *arg) {
  for (;;)
    usleep(1000);
  return arg;
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  if (!strcmp(mode, "show"))
    return show(argc, argv);
  if (!strcmp(mode, "pid"))
    return getpid() == atoi(argv[2]) && getpid() == gettid() ? 11 : 12;
  if (!strcmp(mode, "cat")) {
    char bytes[64];
    ssize_t got = read(0, bytes, sizeof bytes);
    write(1, bytes, got);
    return (int)got;
  }
  if (strcmp(mode, "first"))
    return 99;
  fflush(stdout);
  int file = open("text", O_RDWR | O_CREAT | O_TRUNC, 0644);
  write(file, "abcdefghi", 9);
  lseek(file, 0, SEEK_SET);
  pid_t child = fork();
  if (!child) {
    dup2(file, 5);
    int kept = fcntl(5, F_DUPFD_CLOEXEC, 7);
    dup2(5, 6);
    fcntl(kept, F_GETFD);
    close(file);
    static char room[16384];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&stack, 0);
    signal(SIGUSR1, note);
    signal(SIGUSR2, SIG_IGN);
    sigset_t hup;
    sigemptyset(&hup);
    sigaddset(&hup, SIGHUP);
    sigprocmask(SIG_SETMASK, &hup, 0);
    raise(SIGHUP);
    alarm(100);
    umask(027);
    char *args[] = {self, "show", "one", "", "three words here", 0}, *env[] = {"A=1", "B=", 0};
    execve(self, args, env);
    _exit(1);
  }
  printf("exit %d\n", wait_for(child));
  close(file);
  char *none[] = {0};
  char *args[] = {self, "show", 0};
  failed("missing", execve("./missing", args, none));
  failed("in a file", execve("text/x", args, none));
  failed("not executable", execve("text", args, none));
  failed("directory", execve("/", args, none));
  failed("empty", execve("", args, none));
  chmod("text", 0755);
  failed("no program", execve("text", args, none));
  // How long arguments may be in total depends on the limit of the stack.
  struct rlimit stack;
  getrlimit(RLIMIT_STACK, &stack);
  stack.rlim_cur = 8 << 20;
  setrlimit(RLIMIT_STACK, &stack);
  char *large = malloc(200000);
  memset(large, 'x', 199999);
  large[199999] = 0;
  char *too_large[] = {self, large, 0};
  failed("too large", execve(self, too_large, none));
  large[1000] = 0;
  static char *many[4000];
  for (int i = 0; i < 3999; i++)
    many[i] = large;
  failed("too many", execve(self, many, none));
  file = open("script", O_WRONLY | O_CREAT | O_TRUNC, 0755);
  const char *script = "#!./program show\nanything\n";
  write(file, script, strlen(script));
  close(file);
  fflush(stdout);
  child = fork();
  if (!child) {
    close(3);
    char *script_args[] = {"zero", "after", 0};
    execve("./script", script_args, none);
    _exit(1);
  }
  printf("script %d\n", wait_for(child));
  fflush(stdout);
  child = vfork();
  if (!child) {
    execl(self, self, "nothing", (char *)0);
    _exit(1);
  }
  printf("vfork %d\n", wait_for(child));

  // All other threads are gone, and whoever calls is the first one then.
  child = fork();
  if (!child) {
    pthread_t threads[2];
    int pid = getpid();
    pthread_create(&threads[0], 0, runs, 0);
    pthread_create(&threads[1], 0, executes, &pid);
    for (;;)
      pause();
  }
  printf("from a thread %d\n", wait_for(child));

  int in[2], out[2];
  pipe(in);
  pipe(out);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  posix_spawn_file_actions_addclose(&actions, in[1]);
  char *cat[] = {self, "cat", 0};
  int spawned = posix_spawn(&child, self, &actions, 0, cat, environ);
  printf("spawn %d\n", spawned);
  write(in[1], "through", 7);
  char bytes[16] = "";
  printf("exit %d", wait_for(child));
  printf(" read %zd %s\n", read(out[0], bytes, sizeof bytes), bytes);
  printf("spawn %s\n", strerror(posix_spawn(&child, "./missing", 0, 0, cat, environ)));
  fflush(stdout);
  unlink("text");
  unlink("script");
  return 0;
}

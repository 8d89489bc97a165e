// Runs a program and notes how much processor time it took, with all processes that it starts. Stands for the program
// in a workload: METER is a link or copy of this beside NAME.run, which has the path of the program, and NAME.times, to
// which a line is added for each run: microseconds, exit status.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile pid_t child;

static void pass_on(int signal) {
  if (child > 0) kill(child, signal);
}

int main(int argc, char **argv) {
  (void)argc;
  char own[PATH_MAX - 8], path[PATH_MAX], program[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
  if (length < 0) return 127;
  own[length] = 0;
  snprintf(path, sizeof path, "%s.run", own);
  FILE *file = fopen(path, "r");
  if (!file || !fgets(program, sizeof program, file)) return 127;
  fclose(file);
  program[strcspn(program, "\n")] = 0;
  // What the program leaves behind in the background is waited for, too.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &before, 0);
    execv(program, argv);
    fprintf(stderr, "cannot run %s: %s\n", program, strerror(errno));
    _exit(127);
  }
  for (size_t at = 0; at < sizeof signals / sizeof *signals; at++) {
    struct sigaction action = {.sa_handler = pass_on};
    sigaction(signals[at], &action, 0);
  }
  sigprocmask(SIG_SETMASK, &before, 0);
  int status = 127 << 8;
  for (;;) {
    int ended;
    pid_t who = wait(&ended);
    if (who == child) status = ended;
    if (who < 0 && errno != EINTR) break;
  }
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  long long micros = (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000ll;
  micros += usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
  char line[64];
  int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  int size = snprintf(line, sizeof line, "%lld %d\n", micros, code);
  snprintf(path, sizeof path, "%s.times", own);
  int times = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (times < 0 || write(times, line, (size_t)size) != size) return 127;
  close(times);
  if (WIFSIGNALED(status)) {
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  return code;
}

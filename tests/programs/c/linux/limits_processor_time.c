// exec:
// RLIMIT_CPU: SIGXCPU in each second from the soft limit on, SIGKILL at the hard one.
#include "files.h"
#include <sys/resource.h>

static volatile sig_atomic_t told;

static void count(int signal, siginfo_t *info, void *context) {
  (void)context;
  if (signal == SIGXCPU && info->si_code == SI_KERNEL) told++;
}

static int limit(rlim_t soft, rlim_t hard) {
  struct rlimit to = {soft, hard};
  return setrlimit(RLIMIT_CPU, &to);
}

static void show(pid_t child) {
  int status;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) printf("killed by %d\n", WTERMSIG(status));
  else printf("exited with %d\n", WEXITSTATUS(status));
  fflush(stdout);
}

int main(void) {
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    limit(1, RLIM_INFINITY);
    for (;;);
  }
  show(child);

  child = fork();
  if (!child) {
    limit(1, 3);
    struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO};
    sigaction(SIGXCPU, &action, NULL);
    while (told < 2);
    struct rlimit now;
    getrlimit(RLIMIT_CPU, &now);
    printf("told %d, limits %d %d\n", told, (int)now.rlim_cur, (int)now.rlim_max);
    fflush(stdout);
    for (;;);
  }
  show(child);

  // Time that passes in sleep does not count.
  child = fork();
  if (!child) {
    limit(1, 1);
    sleep(2);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    _exit(used.ru_utime.tv_sec == 0 ? 7 : 8);
  }
  show(child);
  TRY(limit(5, 4));
  TRY(limit(RLIM_INFINITY, RLIM_INFINITY));
  return 0;
}

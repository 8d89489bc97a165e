// exec:
// RLIMIT_NPROC bounds processes and threads of a user who is not root.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *nothing(void *unused) { return unused; }

static void try(const char *who) {
  errno = 0;
  pid_t child = fork();
  if (child == 0) _exit(7);
  printf("%s: fork %s, ", who, child < 0 ? strerror(errno) : "works");
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  pthread_t thread;
  int failed = pthread_create(&thread, NULL, nothing, NULL);
  if (!failed) pthread_join(thread, NULL);
  printf("child %d, thread %s\n", WEXITSTATUS(status), failed ? strerror(failed) : "works");
  fflush(stdout);
}

int main(void) {
  struct rlimit none = {0, 0};
  try("without limit");
  printf("set %d\n", setrlimit(RLIMIT_NPROC, &none));
  try("root");
  if (setuid(65534)) return 1;
  try("nobody");
  none.rlim_max = 10;
  printf("raise %d %s\n", setrlimit(RLIMIT_NPROC, &none), strerror(errno));
  return 0;
}

// exec:
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

int main(void) {
  struct utsname name;
  printf("%d %s %s\n", uname(&name), name.sysname, name.machine);
  printf("%d %d\n", getpid() > 0, getppid() >= 0);
  printf("%d %d\n", isatty(0), errno == ENOTTY);
  struct timespec nap = {0, 1000};
  printf("%d\n", nanosleep(&nap, NULL));
  struct rlimit limit;
  printf("%d\n", getrlimit(RLIMIT_STACK, &limit));
  printf("%d\n", clock() >= 0);
  printf("%s|%s\n", strsignal(11), strerror(EACCES));
  return 0;
}

// exec:
// What `adjtimex` tells, and what nobody may ask for.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static void result(const char *what, long value) {
  printf("%s %ld %s\n", what, value, value < 0 ? strerror(errno) : "");
}

int main(void) {
  struct timex all = {0};
  long state = adjtimex(&all);
  printf("tells %d, precision %ld, tolerance %ld\n", state >= 0 && state <= TIME_ERROR, all.precision, all.tolerance);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  printf("time %d\n", now.tv_sec - all.time.tv_sec <= 600);
  result("nowhere", syscall(SYS_adjtimex, NULL));
  result("monotonic", clock_adjtime(CLOCK_MONOTONIC, &all));
  result("no clock", clock_adjtime(99, &all));
  all.modes = 0x8000;
  result("neither", adjtimex(&all));
  if (setuid(65534)) return 1;
  all.modes = ADJ_OFFSET_SS_READ;
  result("asks", adjtimex(&all) < 0);
  all.modes = ADJ_FREQUENCY;
  result("frequency", adjtimex(&all));
  all.modes = ADJ_SETOFFSET;
  result("step", adjtimex(&all));
  all.modes = ADJ_OFFSET_SINGLESHOT;
  result("slowly", adjtimex(&all));
  all.modes = 0;
  result("only asks", adjtimex(&all) < 0);
  return 0;
}

// exec:
// Files of the kernel that runtimes and servers read to count processors and to look at themselves.
#include "files.h"
#include <sched.h>
#include <signal.h>

static char text[65536];

static long slurp(const char *path) {
  int fd = open(path, O_RDONLY);
  if (fd < 0) {
    printf("%s: %s\n", path, error_name(errno));
    text[0] = 0;
    return -1;
  }
  long total = 0, count;
  while ((count = read(fd, text + total, sizeof text - 1 - total)) > 0) total += count;
  text[total] = 0;
  close(fd);
  return total;
}

// The number of processors in a list such as `0-3,7`; -1 if it is none.
static int listed(const char *path) {
  if (slurp(path) < 0) return -1;
  int processors = 0;
  for (char *at = text; *at != '\n'; at += *at == ',') {
    char *end;
    long first = strtol(at, &end, 10), last = first;
    if (end == at) return -1;
    if (*end == '-') last = strtol(end + 1, &end, 10);
    if (*end != ',' && *end != '\n') return -1;
    processors += last - first + 1;
    at = end;
  }
  return processors;
}

// Prints a set of `status`. The signals of `hidden` depend on who started the program.
static void print_set(const char *name, unsigned long hidden) {
  slurp("/proc/self/status");
  char *line = strstr(text, name);
  TRY(line != NULL);
  if (line) printf("%s %lx\n", name, strtoul(line + strlen(name), NULL, 16) & ~hidden);
}

static void handle(int signal) { (void)signal; }

int main(void) {
  cpu_set_t own;
  sched_getaffinity(0, sizeof own, &own);
  int online = listed("/sys/devices/system/cpu/online");
  TRY(online >= CPU_COUNT(&own));
  TRY(listed("/sys/devices/system/cpu/present") >= online);
  TRY(listed("/sys/devices/system/cpu/possible") >= online);
  TRY(slurp("/sys/kernel/mm/transparent_hugepage/enabled") > 0 && strchr(text, '[') != NULL);
  TRY(slurp("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size") > 0 && atoi(text) == 2097152);
  TRY(slurp("/proc/self/mountinfo") > 0 && strstr(text, " - ") && strstr(text, " / / "));
  TRY(slurp("/proc/sys/kernel/cap_last_cap") > 0 && atoi(text) >= 40);
  TRY(slurp("/proc/sys/kernel/ngroups_max") > 0 && atoi(text) == 65536);
  TRY(slurp("/proc/sys/net/core/rmem_default") > 0 && atoi(text) > 0);
  TRY(slurp("/proc/sys/vm/overcommit_ratio") > 0 && atoi(text) > 0);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGRTMIN);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
  for (int number = 1; number < 32; number++) signal(number, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGUSR1, handle);
  signal(SIGTERM, handle);
  raise(SIGUSR1);
  kill(getpid(), SIGRTMIN);
  print_set("SigPnd:", 0);
  print_set("ShdPnd:", 0);
  print_set("SigBlk:", 0);
  print_set("SigIgn:", ~0x7ffffffful);
  print_set("SigCgt:", 0);
  print_set("CapAmb:", 0);
  return 0;
}

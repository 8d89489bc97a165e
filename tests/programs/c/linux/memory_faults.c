// exec:
#include "memory_cases.h"
#include <setjmp.h>

static sigjmp_buf back;
static char *base;

static void fault(int signal, siginfo_t *information, void *context) {
  (void)context;
  printf("signal %d code %d at %ld\n", signal, information->si_code, (long)((char *)information->si_addr - base));
  siglongjmp(back, 1);
}

static void read_at(long at) {
  if (!sigsetjmp(back, 1))
    printf("read %d\n", *(volatile char *)(base + at));
}

static void write_at(long at) {
  if (!sigsetjmp(back, 1)) {
    *(volatile char *)(base + at) = 'w';
    printf("written\n");
  }
}

int main(void) {
  struct sigaction action = {.sa_sigaction = fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, 0);
  sigaction(SIGBUS, &action, 0);
  base = map_pages(4);
  mprotect(base + PAGE, PAGE, PROT_READ);
  mprotect(base + 2 * PAGE, PAGE, PROT_NONE);
  write_at(5);
  read_at(5);
  write_at(PAGE + 5);
  read_at(PAGE + 5);
  write_at(2 * PAGE + 5);
  read_at(2 * PAGE + 5);
  write_at(3 * PAGE + 5);
  // Protection that a handler would lift.
  mprotect(base, 4 * PAGE, PROT_READ | PROT_WRITE);
  write_at(PAGE + 5);
  read_at(2 * PAGE + 5);
  munmap(base + PAGE, PAGE);
  read_at(PAGE + 1);
  write_at(PAGE + 2);
  read_at(5);
  const char *name = "/tmp/everett_memory_faults";
  int fd = new_file(name, "file", 10);
  base = mmap(0, 3 * PAGE, RW, MAP_SHARED, fd, 0);
  read_at(0);
  write_at(PAGE - 1);
  read_at(PAGE);
  write_at(2 * PAGE + 3);
  ftruncate(fd, 2 * PAGE);
  read_at(PAGE);
  write_at(PAGE + 1);
  ftruncate(fd, 0);
  read_at(0);
  ftruncate(fd, PAGE);
  read_at(0);
  unlink(name);
  munmap(base, 3 * PAGE);
  read_at(0);
  return 0;
}

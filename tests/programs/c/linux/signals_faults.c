// build: -O1
// exec:
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static siginfo_t last;
static void escape(int signal, siginfo_t *si, void *context) {
  last = *si;
  (void)context;
  siglongjmp(back, signal);
}

static int returns;
static void comes_back(int signal, siginfo_t *si, void *context) {
  (void)context, (void)si;
  if (++returns == 3)
    siglongjmp(back, signal);
}

static void set(int signal, void (*handler)(int, siginfo_t *, void *), int flags) {
  struct sigaction action = {0};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(signal, &action, 0);
}

static volatile int zero, sink;
static int *volatile nowhere;

static int deep(volatile char *below, int n) {
  volatile char room[4096];
  room[0] = (char)n;
  if (n < 0)
    return below[0];
  return deep(room, n + 1) + room[0];
}

static int status_of(void (*work)(void)) {
  fflush(stdout);
  pid_t child = fork();
  int status;
  if (!child) {
    work();
    _exit(0);
  }
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void plain_fault(void) { sink = *nowhere; }
static void blocked_fault(void) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, 0);
  sink = *nowhere;
}
static void ignored_fault(void) {
  signal(SIGSEGV, SIG_IGN);
  sink = *nowhere;
}
static void handler_faults(int signal) {
  (void)signal;
  sink = *nowhere;
}
static void double_fault(void) {
  signal(SIGSEGV, handler_faults);
  sink = *nowhere;
}
static void aborts(void) { abort(); }
static void abort_noted(int signal) {
  (void)signal;
  write(1, "abort handler\n", 14);
}
static void aborts_with_handler(void) {
  signal(SIGABRT, abort_noted);
  abort();
}
static void exits_in_handler(int signal) { _exit(signal); }
static void fault_exits(void) {
  signal(SIGSEGV, exits_in_handler);
  sink = *nowhere;
}

int main(void) {
  set(SIGSEGV, escape, 0);
  int got = sigsetjmp(back, 1);
  if (!got)
    sink = *nowhere;
  printf("null read %d address %d code %d\n", got == SIGSEGV, last.si_addr == 0, last.si_code == SEGV_MAPERR);
  got = sigsetjmp(back, 1);
  if (!got)
    ((volatile char *)nowhere)[100] = 1;
  printf("null write %d address %ld\n", got == SIGSEGV, (long)last.si_addr);
  char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page, 4096);
  got = sigsetjmp(back, 1);
  if (!got)
    ((volatile char *)page)[5] = 1;
  printf("unmapped %d address %d\n", got == SIGSEGV, (char *)last.si_addr == page + 5);
  static const char text[] = "constant";
  got = sigsetjmp(back, 1);
  if (!got)
    *(volatile char *)text = 1;
  printf("constant %d address %d code %d\n", got == SIGSEGV, last.si_addr == text, last.si_code == SEGV_ACCERR);
  set(SIGFPE, escape, 0);
  got = sigsetjmp(back, 1);
  if (!got)
    sink = 7 / zero;
  printf("division %d code %d\n", got == SIGFPE, last.si_code == FPE_INTDIV);
  got = sigsetjmp(back, 1);
  if (!got)
    sink = 7 % zero;
  printf("remainder %d code %d\n", got == SIGFPE, last.si_code == FPE_INTDIV);
  set(SIGILL, escape, 0);
  got = sigsetjmp(back, 1);
  if (!got)
    __builtin_trap();
  printf("trap %d code %d\n", got == SIGILL, last.si_code == ILL_ILLOPN);
  // The instruction is executed again when the handler returns.
  set(SIGSEGV, comes_back, 0);
  got = sigsetjmp(back, 1);
  if (!got)
    sink = *nowhere;
  printf("again %d times %d\n", got == SIGSEGV, returns);
  static char room[65536];
  stack_t stack = {.ss_sp = room, .ss_size = sizeof room}, old;
  printf("sigaltstack %d\n", sigaltstack(&stack, &old));
  printf("before %d\n", old.ss_flags == SS_DISABLE);
  set(SIGSEGV, escape, SA_ONSTACK);
  got = sigsetjmp(back, 1);
  if (!got)
    sink = deep(0, 0);
  printf("stack overflow %d\n", got == SIGSEGV);
  got = sigsetjmp(back, 1);
  if (!got)
    sink = deep(0, 0);
  printf("and again %d\n", got == SIGSEGV);
  signal(SIGSEGV, SIG_DFL);
  printf("plain %d\n", status_of(plain_fault));
  printf("blocked %d\n", status_of(blocked_fault));
  printf("ignored %d\n", status_of(ignored_fault));
  printf("double %d\n", status_of(double_fault));
  printf("abort %d\n", status_of(aborts));
  printf("abort with handler %d\n", status_of(aborts_with_handler));
  printf("exit in handler %d\n", status_of(fault_exits));
  return 0;
}

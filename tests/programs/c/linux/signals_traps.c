// exec:
// The signal of an instruction that raises an exception: which one, and its code. `hlt` is privileged.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static siginfo_t last;

static void escape(int signal, siginfo_t *si, void *context) {
  (void)context;
  last = *si;
  siglongjmp(back, signal);
}

static void halts(void) { __asm__ volatile("hlt"); }
static void is_undefined(void) { __asm__ volatile("ud2"); }
static void breaks(void) { __asm__ volatile("int3"); }

static void tell(const char *name, void (*work)(void)) {
  int signal = sigsetjmp(back, 1);
  if (!signal)
    work();
  printf("%s: signal %d, code %d\n", name, signal, last.si_code);
  fflush(stdout);
  pid_t child = fork();
  if (!child) {
    for (int number = 1; number < 32; number++)
      if (number != SIGKILL && number != SIGSTOP)
        sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, 0);
    work();
    _exit(0);
  }
  int status;
  waitpid(child, &status, 0);
  printf("%s: ends by %d\n", name, WTERMSIG(status));
}

int main(void) {
  static const int signals[] = {SIGSEGV, SIGILL, SIGTRAP};
  for (int at = 0; at < 3; at++) {
    struct sigaction action = {0};
    action.sa_sigaction = escape;
    action.sa_flags = SA_SIGINFO;
    sigaction(signals[at], &action, 0);
  }
  tell("hlt", halts);
  tell("ud2", is_undefined);
  tell("int3", breaks);
  return 0;
}

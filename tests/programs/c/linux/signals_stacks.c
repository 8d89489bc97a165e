// exec:
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static stack_t inside;
static int set_inside, error_inside;
static sigset_t mask_inside;
static void look(int signal, siginfo_t *si, void *context) {
  ucontext_t *uc = context;
  (void)signal, (void)si;
  sigaltstack(0, &inside);
  static char other[16384];
  stack_t stack = {.ss_sp = other, .ss_size = sizeof other};
  set_inside = sigaltstack(&stack, 0);
  error_inside = errno;
  mask_inside = uc->uc_sigmask;
}

static void blocks_more(int signal, siginfo_t *si, void *context) {
  ucontext_t *uc = context;
  (void)signal, (void)si;
  sigaddset(&uc->uc_sigmask, SIGUSR2);
}

static void set(void (*handler)(int, siginfo_t *, void *), int flags) {
  struct sigaction action = {0};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(SIGUSR1, &action, 0);
}

int main(void) {
  static char room[16384];
  stack_t stack = {.ss_sp = room, .ss_size = sizeof room}, old;
  sigaltstack(0, &old);
  printf("none %d\n", old.ss_flags == SS_DISABLE);
  stack.ss_size = 100;
  printf("small %d", sigaltstack(&stack, 0));
  printf(" %s\n", strerror(errno));
  stack.ss_size = sizeof room;
  stack.ss_flags = 77;
  printf("flags %d", sigaltstack(&stack, 0));
  printf(" %s\n", strerror(errno));
  stack.ss_flags = 0;
  printf("set %d\n", sigaltstack(&stack, &old));
  sigaltstack(0, &old);
  printf("is set %d %zu %d\n", old.ss_sp == room, old.ss_size, old.ss_flags);
  set(look, SA_ONSTACK);
  raise(SIGUSR1);
  printf("inside %d on %d set %d %s\n", inside.ss_sp == room, inside.ss_flags == SS_ONSTACK, set_inside,
         strerror(error_inside));
  sigaltstack(0, &old);
  printf("after %d\n", old.ss_flags);
  set(look, 0);
  raise(SIGUSR1);
  printf("without flag: on %d set %d\n", inside.ss_flags == SS_ONSTACK, set_inside);
  stack.ss_flags = SS_DISABLE;
  printf("disable %d\n", sigaltstack(&stack, 0));
  set(look, SA_ONSTACK);
  raise(SIGUSR1);
  printf("disabled: on %d\n", inside.ss_flags == SS_ONSTACK);
  // What the context says about blocked signals holds when the handler returns.
  sigset_t hup, now;
  sigemptyset(&hup);
  sigaddset(&hup, SIGHUP);
  sigprocmask(SIG_SETMASK, &hup, 0);
  raise(SIGUSR1);
  printf("context: HUP %d USR1 %d\n", sigismember(&mask_inside, SIGHUP), sigismember(&mask_inside, SIGUSR1));
  set(blocks_more, 0);
  raise(SIGUSR1);
  sigprocmask(SIG_BLOCK, 0, &now);
  printf("HUP %d USR2 %d USR1 %d\n", sigismember(&now, SIGHUP), sigismember(&now, SIGUSR2),
         sigismember(&now, SIGUSR1));
  return 0;
}

// exec:
// Variables of handlers lie on the alternate stack, and what is more than it has room for faults.
#define _GNU_SOURCE
#include <alloca.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define SIZE 65536

static char *room;
static sigjmp_buf back;
static volatile int sum;

static int inside(const volatile void *address) {
  return (uintptr_t)address >= (uintptr_t)room && (uintptr_t)address < (uintptr_t)room + SIZE;
}

static __attribute__((noinline)) int below(int depth, char *seen) {
  char text[64];
  int count = snprintf(text, sizeof text, "%d %s", depth, depth % 2 ? "odd" : "even");
  if (!inside(text) || text >= seen) return -1000;
  if (depth == 0) return count;
  return count + below(depth - 1, text);
}

static void look(int signal, siginfo_t *info, void *context) {
  volatile int local = signal;
  char array[100];
  memset(array, 'x', sizeof array);
  char *dynamic = alloca(50 + local);
  memset(dynamic, 'y', 50);
  printf("local %d, array %d, dynamic %d, info %d, context %d\n", inside(&local), inside(array), inside(dynamic),
         inside(info), inside(context));
  printf("deep %d, kept %d\n", below(20, array < dynamic ? array : dynamic), array[99] == 'x' && dynamic[49] == 'y');
}

static void plain(int signal) {
  volatile int local = signal;
  printf("without the flag: %d\n", inside(&local));
}

static void jump(int signal) {
  volatile int local = signal;
  printf("jumps from it: %d\n", inside(&local));
  siglongjmp(back, 1);
}

static void nested(int signal) {
  volatile int local = signal;
  raise(SIGUSR1);
  printf("nested: %d %d\n", inside(&local), local == signal);
}

static __attribute__((noinline)) int without_end(int depth) {
  volatile char much[1024];
  much[depth % 1024] = (char)depth;
  sum += much[0];
  return without_end(depth + 1) + much[depth % 1024];
}

static void overflow(int signal) { sum += without_end(signal); }

static void set(int signal, void (*handler)(int), int flags) {
  struct sigaction action = {0};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, 0);
}

int main(void) {
  char *guarded = mmap(NULL, SIZE + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(guarded, 65536, PROT_NONE);
  room = guarded + 65536;
  stack_t stack = {.ss_sp = room, .ss_size = SIZE};
  sigaltstack(&stack, 0);
  struct sigaction action = {0};
  action.sa_sigaction = look;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGUSR1, &action, 0);
  raise(SIGUSR1);
  raise(SIGUSR1);
  set(SIGUSR2, plain, 0);
  raise(SIGUSR2);
  set(SIGUSR2, nested, SA_ONSTACK);
  raise(SIGUSR2);
  set(SIGUSR2, jump, SA_ONSTACK);
  for (volatile int round = 0; round < 3; round++)
    if (sigsetjmp(back, 1) == 0) raise(SIGUSR2);
  raise(SIGUSR1);
  volatile char here[16];
  printf("afterwards: %d\n", inside(here));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    set(SIGUSR2, overflow, SA_ONSTACK);
    raise(SIGUSR2);
    _exit(1);
  }
  int status;
  waitpid(child, &status, 0);
  printf("overflow: %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  // An array of the program as the stack.
  static char global[SIZE];
  room = stack.ss_sp = global;
  sigaltstack(&stack, 0);
  raise(SIGUSR1);
  return 0;
}

// Jumps leave frames in between, and those above keep their red zones. Arguments: what overflows afterwards.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static __thread sigjmp_buf place;
static __thread volatile long sum;

static void leave(int signal) {
  volatile char block[100];
  for (int i = 0; i < 100; i++) block[i] = (char)signal;
  sum += block[signal];
  siglongjmp(place, 1);
}

__attribute__((noinline)) static void deep(int depth) {
  volatile char block[72];
  for (int i = 0; i < 72; i++) block[i] = (char)depth;
  if (depth == 0) raise(SIGUSR1);
  deep(depth - 1);
  sum += block[depth % 72];
}

__attribute__((noinline)) static void jump(int depth) {
  volatile char block[40];
  for (int i = 0; i < 40; i++) block[i] = (char)depth;
  if (depth == 0) siglongjmp(place, 1);
  jump(depth - 1);
  sum += block[depth % 40];
}

__attribute__((noinline)) static void again(void) {
  char block[20000], *volatile use = block;
  memset(use, 7, sizeof block);
  sum += use[7];
}

static void signals(void *other, size_t size) {
  stack_t stack = {.ss_sp = other, .ss_size = size};
  sigaltstack(&stack, 0);
  for (int i = 0; i < 20; i++) {
    if (!sigsetjmp(place, 1)) deep(i);
    again();
  }
}

static void *work(void *other) {
  signals(other, 65536);
  return (void *)sum;
}

__attribute__((noinline)) static int outer(const char *text, int how) {
  char block[8];
  if (!sigsetjmp(place, 1)) {
    if (how == 'v') {
      pid_t child = vfork();
      if (child == 0) _exit(0);
      waitpid(child, 0, 0);
    } else if (how == 's') {
      deep(3);
    } else {
      jump(3);
    }
  }
  strcpy(block, text);
  return block[0] + (int)strlen(block);
}

int main(int argc, char **argv) {
  struct sigaction action = {.sa_handler = leave, .sa_flags = SA_ONSTACK | SA_NODEFER};
  sigaction(SIGUSR1, &action, 0);
  // The stack for signals of a thread is below its own, in a mapping or in a block of the heap.
  char *both = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void *blocks[2] = {both, malloc(4 << 20)};
  for (int i = 0; i < 2; i++) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, both + (1 << 19), 1 << 19);
    pthread_t thread;
    void *result;
    pthread_create(&thread, &attributes, work, blocks[i]);
    pthread_join(thread, &result);
    printf("%ld %d\n", (long)result, (char *)blocks[i] < both + (1 << 19));
  }
  signals(blocks[1], 65536);
  printf("%ld\n", sum);
  fflush(stdout);
  const char *text = argc > 2 ? argv[2] : "short";
  printf("%d %d %d\n", outer(text, argc > 1 ? argv[1][0] : 'v'), outer("right", 'v'), outer("safe", 'j'));
  return 0;
}

// exec:
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static int pipes[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;

static void cleanup(void *what) { printf("cleanup %s\n", (char *)what); }

static void *reads(void *arg) {
  char byte;
  pthread_cleanup_push(cleanup, "outer");
  pthread_cleanup_push(cleanup, "inner");
  read(pipes[0], &byte, 1);
  puts("not reached");
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  return arg;
}

static void unlock(void *mutex) {
  printf("unlock %d\n", pthread_mutex_unlock(mutex));
}

static void *waits(void *arg) {
  pthread_mutex_lock(&lock);
  pthread_cleanup_push(unlock, &lock);
  for (;;)
    pthread_cond_wait(&never, &lock);
  pthread_cleanup_pop(1);
  return arg;
}

static void *sleeps(void *arg) {
  pthread_cleanup_push(cleanup, "sleeper");
  sleep(1000);
  pthread_cleanup_pop(1);
  return arg;
}

static void *tests(void *arg) {
  for (;;) {
    pthread_testcancel();
    struct timespec moment = {0, 1000};
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    nanosleep(&moment, 0);
    pthread_setcancelstate(old, 0);
  }
  return arg;
}

static void *refuses(void *arg) {
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
  char byte = 0;
  printf("read %zd\n", read(pipes[0], &byte, 1));
  printf("byte %c\n", byte);
  return arg;
}

static void *pending(void *arg) {
  char byte;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, 0);
  printf("read %zd\n", read(pipes[0], &byte, 1));
  pthread_cleanup_push(cleanup, "pending");
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, 0);
  read(pipes[0], &byte, 1);
  puts("not reached");
  pthread_cleanup_pop(0);
  return arg;
}

static void *quick(void *arg) { return arg; }

static void try(const char *name, void *(*start)(void *), int feed) {
  pthread_t thread;
  void *result = 0;
  printf("%s: create %d\n", name, pthread_create(&thread, 0, start, "result"));
  usleep(20000);
  int canceled = pthread_cancel(thread);
  usleep(20000);
  if (feed)
    write(pipes[1], "x", 1);
  int joined = pthread_join(thread, &result);
  printf("cancel %d join %d", canceled, joined);
  printf(" %s\n", result == PTHREAD_CANCELED ? "canceled" : result ? (char *)result : "null");
}

int main(void) {
  pipe(pipes);
  try("read", reads, 0);
  try("cond", waits, 0);
  printf("lock is free: %d\n", pthread_mutex_trylock(&lock));
  try("sleep", sleeps, 0);
  try("testcancel", tests, 0);
  try("disabled", refuses, 1);
  try("pending", pending, 1);
  try("ended", quick, 0);
  return 0;
}

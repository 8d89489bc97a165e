// exec:
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_key_t key;
static volatile int started, spins;
static sem_t semaphore;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void cleanup(void *what) { printf("cleanup %s\n", (char *)what); }
static void destroy(void *what) { printf("destroy %s\n", (char *)what); }

static void *spins_forever(void *arg) {
  int old;
  pthread_setspecific(key, "key");
  pthread_cleanup_push(cleanup, "spinner");
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
  started = 1 + (old == PTHREAD_CANCEL_DEFERRED);
  for (;;)
    spins++;
  pthread_cleanup_pop(0);
  return arg;
}

static void *exits(void *arg) {
  pthread_cleanup_push(cleanup, "third");
  pthread_cleanup_push(cleanup, "second");
  pthread_cleanup_push(cleanup, "first");
  pthread_exit(arg);
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(0);
}

static void *pops(void *arg) {
  pthread_cleanup_push(cleanup, "popped and run");
  pthread_cleanup_push(cleanup, "popped");
  pthread_cleanup_pop(0);
  pthread_cleanup_pop(1);
  return arg;
}

static void *cancels_itself(void *arg) {
  pthread_cleanup_push(cleanup, "self");
  pthread_cancel(pthread_self());
  puts("goes on");
  pthread_testcancel();
  puts("not reached");
  pthread_cleanup_pop(0);
  return arg;
}

static void *waits_for_semaphore(void *arg) {
  pthread_cleanup_push(cleanup, "semaphore");
  sem_wait(&semaphore);
  pthread_cleanup_pop(0);
  return arg;
}

static void initialises(void) {
  sem_wait(&semaphore);
  puts("initialised");
}
static void *once_only(void *arg) {
  pthread_once(&once, initialises);
  return arg;
}

static void *joins(void *arg) {
  pthread_join(*(pthread_t *)arg, 0);
  puts("not reached");
  return 0;
}

static void *suspends(void *arg) {
  sigset_t none;
  sigemptyset(&none);
  sigsuspend(&none);
  puts("not reached");
  return arg;
}

static const char *cancel(void *(*work)(void *), void *arg) {
  pthread_t thread;
  void *result = 0;
  pthread_create(&thread, 0, work, arg);
  while (work == spins_forever && !started)
    usleep(1000);
  usleep(20000);
  int canceled = pthread_cancel(thread);
  int joined = pthread_join(thread, &result);
  static char text[64];
  snprintf(text, sizeof text, "%d %d %s", canceled, joined, result == PTHREAD_CANCELED ? "canceled" : "returned");
  return text;
}

int main(void) {
  pthread_key_create(&key, destroy);
  sem_init(&semaphore, 0, 0);
  pthread_t thread;
  void *result;
  printf("async %s\n", cancel(spins_forever, 0));
  printf("was deferred %d\n", started == 2);
  pthread_create(&thread, 0, exits, "exit");
  pthread_join(thread, &result);
  printf("%s\n", (char *)result);
  pthread_create(&thread, 0, pops, "pops");
  pthread_join(thread, &result);
  printf("%s\n", (char *)result);
  pthread_create(&thread, 0, cancels_itself, 0);
  pthread_join(thread, &result);
  printf("itself %d\n", result == PTHREAD_CANCELED);
  printf("semaphore %s\n", cancel(waits_for_semaphore, 0));
  printf("once %s\n", cancel(once_only, 0));
  sem_post(&semaphore);
  pthread_once(&once, initialises);
  pthread_t sleeper;
  pthread_create(&sleeper, 0, waits_for_semaphore, 0);
  printf("join %s\n", cancel(joins, &sleeper));
  sem_post(&semaphore);
  pthread_join(sleeper, 0);
  printf("sigsuspend %s\n", cancel(suspends, 0));
  return 0;
}

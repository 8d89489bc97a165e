// exec:
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex;
static void *result_of_other;

static void init(int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, type);
  pthread_mutex_init(&mutex, &attributes);
}

static void *tries(void *arg) {
  (void)arg;
  return (void *)(long)pthread_mutex_trylock(&mutex);
}
static void *unlocks(void *arg) {
  (void)arg;
  return (void *)(long)pthread_mutex_unlock(&mutex);
}
static void *times_out(void *arg) {
  (void)arg;
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  at.tv_nsec += 10000000;
  if (at.tv_nsec >= 1000000000)
    at.tv_sec++, at.tv_nsec -= 1000000000;
  return (void *)(long)pthread_mutex_timedlock(&mutex, &at);
}
static void *dies_holding(void *arg) {
  pthread_mutex_lock(&mutex);
  return arg;
}

static const char *other(void *(*work)(void *)) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, &result_of_other);
  return result_of_other ? strerror((int)(long)result_of_other) : "0";
}

static long counter;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static void *counts(void *arg) {
  for (int i = 0; i < 1000; i++) {
    pthread_mutex_lock(&guard);
    long seen = counter;
    if (i % 100 == 0)
      sched_yield();
    counter = seen + 1;
    pthread_mutex_unlock(&guard);
  }
  return arg;
}

int main(void) {
  init(PTHREAD_MUTEX_NORMAL);
  printf("normal %d\n", pthread_mutex_lock(&mutex));
  printf("other tries %s\n", other(tries));
  printf("other waits %s\n", other(times_out));
  printf("unlock %d\n", pthread_mutex_unlock(&mutex));
  printf("other tries %s\n", other(tries));
  pthread_mutex_destroy(&mutex);

  init(PTHREAD_MUTEX_RECURSIVE);
  for (int i = 0; i < 3; i++)
    printf("recursive %d\n", pthread_mutex_lock(&mutex));
  for (int i = 0; i < 3; i++) {
    printf("other %s\n", other(tries));
    printf("unlock %d\n", pthread_mutex_unlock(&mutex));
  }
  printf("too often %s\n", strerror(pthread_mutex_unlock(&mutex)));
  printf("other %s\n", other(tries));

  init(PTHREAD_MUTEX_ERRORCHECK);
  printf("errorcheck %d\n", pthread_mutex_lock(&mutex));
  printf("twice %s\n", strerror(pthread_mutex_lock(&mutex)));
  printf("try %s\n", strerror(pthread_mutex_trylock(&mutex)));
  printf("other unlocks %s\n", other(unlocks));
  printf("unlock %d\n", pthread_mutex_unlock(&mutex));
  printf("again %s\n", strerror(pthread_mutex_unlock(&mutex)));

  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  printf("other dies %s\n", other(dies_holding));
  printf("owner died %s\n", strerror(pthread_mutex_lock(&mutex)));
  printf("consistent %d\n", pthread_mutex_consistent(&mutex));
  printf("unlock %d\n", pthread_mutex_unlock(&mutex));
  printf("usable %d %d\n", pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex));
  other(dies_holding);
  printf("owner died %s\n", strerror(pthread_mutex_trylock(&mutex)));
  printf("unlock %d\n", pthread_mutex_unlock(&mutex));
  printf("not recoverable %s\n", strerror(pthread_mutex_lock(&mutex)));

  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], 0, counts, 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], 0);
  printf("counter %ld\n", counter);

  pthread_spinlock_t spin;
  pthread_spin_init(&spin, 0);
  printf("spin %d", pthread_spin_lock(&spin));
  printf(" %s", strerror(pthread_spin_trylock(&spin)));
  printf(" %d\n", pthread_spin_unlock(&spin));
  return 0;
}

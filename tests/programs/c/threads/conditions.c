// exec:
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t full = PTHREAD_COND_INITIALIZER, empty = PTHREAD_COND_INITIALIZER;
static int slots[4], used, first, done;

static void *produces(void *arg) {
  int base = (int)(long)arg;
  for (int i = 0; i < 50; i++) {
    pthread_mutex_lock(&lock);
    while (used == 4)
      pthread_cond_wait(&empty, &lock);
    slots[(first + used++) % 4] = base + i;
    pthread_cond_signal(&full);
    pthread_mutex_unlock(&lock);
  }
  return 0;
}

static void *consumes(void *arg) {
  long *sum = arg;
  for (;;) {
    pthread_mutex_lock(&lock);
    while (!used && !done)
      pthread_cond_wait(&full, &lock);
    if (!used) {
      pthread_mutex_unlock(&lock);
      return 0;
    }
    *sum += slots[first];
    first = (first + 1) % 4;
    used--;
    pthread_cond_signal(&empty);
    pthread_mutex_unlock(&lock);
  }
}

static int waiting, woken, go;
static pthread_cond_t gate = PTHREAD_COND_INITIALIZER;
static void *waits(void *arg) {
  pthread_mutex_lock(&lock);
  waiting++;
  while (!go)
    pthread_cond_wait(&gate, &lock);
  woken++;
  pthread_mutex_unlock(&lock);
  return arg;
}

static struct timespec soon(clockid_t clock, long milliseconds) {
  struct timespec at;
  clock_gettime(clock, &at);
  at.tv_nsec += milliseconds * 1000000;
  at.tv_sec += at.tv_nsec / 1000000000;
  at.tv_nsec %= 1000000000;
  return at;
}

int main(void) {
  pthread_t threads[6];
  long sums[3] = {0};
  for (long i = 0; i < 3; i++)
    pthread_create(&threads[i], 0, consumes, &sums[i]);
  for (long i = 0; i < 3; i++)
    pthread_create(&threads[3 + i], 0, produces, (void *)(i * 1000));
  for (int i = 3; i < 6; i++)
    pthread_join(threads[i], 0);
  pthread_mutex_lock(&lock);
  done = 1;
  pthread_cond_broadcast(&full);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < 3; i++)
    pthread_join(threads[i], 0);
  printf("sum %ld\n", sums[0] + sums[1] + sums[2]);

  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], 0, waits, 0);
  for (;;) {
    pthread_mutex_lock(&lock);
    int all = waiting == 4;
    pthread_mutex_unlock(&lock);
    if (all)
      break;
    usleep(1000);
  }
  pthread_mutex_lock(&lock);
  pthread_cond_signal(&gate);
  pthread_mutex_unlock(&lock);
  usleep(10000);
  printf("a signal without reason wakes %d\n", woken);
  pthread_mutex_lock(&lock);
  go = 1;
  pthread_cond_broadcast(&gate);
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], 0);
  printf("woken %d\n", woken);

  pthread_mutex_lock(&lock);
  struct timespec at = soon(CLOCK_REALTIME, 20);
  printf("timed %s\n", strerror(pthread_cond_timedwait(&gate, &lock, &at)));
  at.tv_sec -= 100;
  printf("past %s\n", strerror(pthread_cond_timedwait(&gate, &lock, &at)));
  at.tv_nsec = 1000000000;
  printf("bad %s\n", strerror(pthread_cond_timedwait(&gate, &lock, &at)));
  pthread_condattr_t attributes;
  pthread_cond_t monotonic;
  pthread_condattr_init(&attributes);
  printf("setclock %d\n", pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
  pthread_cond_init(&monotonic, &attributes);
  at = soon(CLOCK_MONOTONIC, 20);
  printf("monotonic %s\n", strerror(pthread_cond_timedwait(&monotonic, &lock, &at)));
  pthread_mutex_unlock(&lock);
  printf("destroy %d %d\n", pthread_cond_destroy(&gate), pthread_mutex_destroy(&lock));
  return 0;
}

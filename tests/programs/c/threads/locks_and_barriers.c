// exec:
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static atomic_int serial, arrived, in, most, inits;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct timespec soon(void) {
  struct timespec at;
  clock_gettime(CLOCK_REALTIME, &at);
  at.tv_nsec += 10000000;
  at.tv_sec += at.tv_nsec / 1000000000;
  at.tv_nsec %= 1000000000;
  return at;
}

static void *try_read(void *arg) {
  int got = pthread_rwlock_tryrdlock(&rw);
  if (!got)
    pthread_rwlock_unlock(&rw);
  return arg ? arg : (void *)(long)got;
}
static void *try_write(void *arg) {
  int got = pthread_rwlock_trywrlock(&rw);
  if (!got)
    pthread_rwlock_unlock(&rw);
  return arg ? arg : (void *)(long)got;
}
static void *timed_write(void *arg) {
  struct timespec at = soon();
  int got = pthread_rwlock_timedwrlock(&rw, &at);
  return arg ? arg : (void *)(long)got;
}
static void *timed_read(void *arg) {
  struct timespec at = soon();
  int got = pthread_rwlock_timedrdlock(&rw, &at);
  return arg ? arg : (void *)(long)got;
}

static const char *other(void *(*work)(void *)) {
  pthread_t thread;
  void *result;
  pthread_create(&thread, 0, work, 0);
  pthread_join(thread, &result);
  return result ? strerror((int)(long)result) : "0";
}

static int shared_value;
static void *writes(void *arg) {
  for (int i = 0; i < 200; i++) {
    pthread_rwlock_wrlock(&rw);
    int seen = shared_value;
    if (i % 20 == 0)
      sched_yield();
    shared_value = seen + 1;
    pthread_rwlock_unlock(&rw);
    pthread_rwlock_rdlock(&rw);
    if (shared_value < 1)
      puts("impossible");
    pthread_rwlock_unlock(&rw);
  }
  return arg;
}

static void *meets(void *arg) {
  for (int round = 0; round < 5; round++) {
    atomic_fetch_add(&arrived, 1);
    int got = pthread_barrier_wait(&barrier);
    if (got == PTHREAD_BARRIER_SERIAL_THREAD)
      atomic_fetch_add(&serial, 1);
    if (atomic_load(&arrived) < 4 * (round + 1))
      puts("too early");
    pthread_barrier_wait(&barrier);
  }
  return arg;
}

static void *enters(void *arg) {
  for (int i = 0; i < 20; i++) {
    sem_wait(&semaphore);
    int now = atomic_fetch_add(&in, 1) + 1, seen = atomic_load(&most);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now))
      ;
    sched_yield();
    atomic_fetch_sub(&in, 1);
    sem_post(&semaphore);
  }
  return arg;
}

static void initialises(void) { atomic_fetch_add(&inits, 1); }
static void *calls_once(void *arg) {
  pthread_once(&once, initialises);
  return arg;
}

int main(void) {
  printf("read %d %d\n", pthread_rwlock_rdlock(&rw), pthread_rwlock_rdlock(&rw));
  printf("other reads %s writes %s waits %s\n", other(try_read), other(try_write), other(timed_write));
  pthread_rwlock_unlock(&rw);
  pthread_rwlock_unlock(&rw);
  printf("write %d\n", pthread_rwlock_wrlock(&rw));
  printf("other reads %s writes %s waits %s\n", other(try_read), other(try_write), other(timed_read));
  pthread_rwlock_unlock(&rw);
  printf("other writes %s\n", other(try_write));
  pthread_t threads[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], 0, writes, 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], 0);
  printf("value %d\n", shared_value);

  printf("barrier %s\n", strerror(pthread_barrier_init(&barrier, 0, 0)));
  pthread_barrier_init(&barrier, 0, 4);
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], 0, meets, 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], 0);
  printf("arrived %d serial %d destroy %d\n", arrived, serial, pthread_barrier_destroy(&barrier));

  sem_init(&semaphore, 0, 2);
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], 0, enters, 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], 0);
  int value;
  sem_getvalue(&semaphore, &value);
  printf("never more than two %d value %d\n", most <= 2 && most >= 1, value);
  sem_wait(&semaphore);
  sem_wait(&semaphore);
  int tried = sem_trywait(&semaphore);
  printf("try %d %s\n", tried, strerror(errno));
  struct timespec at = soon();
  tried = sem_timedwait(&semaphore, &at);
  printf("timed %d %s\n", tried, strerror(errno));
  printf("post %d", sem_post(&semaphore));
  printf(" wait %d destroy %d\n", sem_timedwait(&semaphore, &at), sem_destroy(&semaphore));

  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], 0, calls_once, 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], 0);
  printf("once %d\n", inits);
  return 0;
}

// run: --check-races --scheduler bounded:1 --preempt atomics
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

// Everything that orders threads, and nothing that races.
static int guarded, posted, flagged, before, after, once_done;
static char text[16];
static atomic_int flag;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;

static void only_once(void) { once_done++; }

static void *work(void *arg) {
  int *local = arg;
  *local += before;
  pthread_mutex_lock(&lock);
  guarded++;
  pthread_mutex_unlock(&lock);
  pthread_once(&once, only_once);
  posted = 1;
  strcpy(text, "posted");
  sem_post(&semaphore);
  flagged = 2;
  atomic_store_explicit(&flag, 1, memory_order_release);
  after = 3;
  return 0;
}

int main(void) {
  pthread_t thread;
  int local = 1;
  before = 1;
  sem_init(&semaphore, 0, 0);
  pthread_create(&thread, 0, work, &local);
  pthread_mutex_lock(&lock);
  guarded++;
  pthread_mutex_unlock(&lock);
  pthread_once(&once, only_once);
  sem_wait(&semaphore);
  int sum = posted + (int)strlen(text);
  if (atomic_load_explicit(&flag, memory_order_acquire))
    sum += flagged;
  pthread_join(thread, 0);
  sum += after + local + guarded + once_done;
  return sum < 14;
}

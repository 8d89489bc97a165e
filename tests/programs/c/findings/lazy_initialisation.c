// run: --scheduler bounded:1 --preempt memory
// build: -O0
// build: -O1
// build: -O2
// finding: assertion 31
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static int *_Atomic shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int get(void) {
  int *value = atomic_load_explicit(&shared, memory_order_relaxed);
  if (!value) {
    pthread_mutex_lock(&lock);
    value = atomic_load_explicit(&shared, memory_order_relaxed);
    if (!value) {
      value = calloc(1, sizeof *value);
      atomic_store_explicit(&shared, value, memory_order_relaxed);
      // Too late: another thread has found it already.
      *value = 42;
    }
    pthread_mutex_unlock(&lock);
  }
  return *value;
}

static void *work(void *arg) {
  assert(get() == 42);
  return arg;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  work(0);
  pthread_join(thread, 0);
  return 0;
}

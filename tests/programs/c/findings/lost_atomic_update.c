// run: --scheduler bounded:1 --preempt atomics
// finding: assertion 22
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_int counter;

static void *work(void *arg) {
  int seen = atomic_load(&counter);
  atomic_store(&counter, seen + 1);
  return arg;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  int seen = atomic_load(&counter);
  atomic_store(&counter, seen + 1);
  pthread_join(thread, 0);
  // Each access is atomic, reading and writing together is not.
  assert(atomic_load(&counter) == 2);
  return 0;
}

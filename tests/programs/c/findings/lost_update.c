// run: --scheduler bounded:1 --preempt memory
// build: -O0
// build: -O1
// build: -O2
// finding: assertion 23
#include <assert.h>
#include <pthread.h>

static int counter;

static void *work(void *arg) {
  (void)arg;
  counter++;
  return 0;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  counter++;
  pthread_join(thread, 0);
  // An update is lost where both read before either writes.
  assert(counter == 2);
  return 0;
}

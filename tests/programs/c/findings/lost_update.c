// run: --scheduler bounded:1 --preempt memory
// finding: assertion 21
// not on -O3: assertion one instruction reads and writes, and native threads take turns between instructions
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

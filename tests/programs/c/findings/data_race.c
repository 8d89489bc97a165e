// run: --check-races
// finding: data-race 13
#include <pthread.h>
#include <stdatomic.h>

static int counter;
static int guarded;
static atomic_int ready;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *arg) {
  (void)arg;
  counter++; // here, or in main
  pthread_mutex_lock(&lock);
  guarded++;
  pthread_mutex_unlock(&lock);
  atomic_store(&ready, 1);
  return 0;
}

int main(void) {
  pthread_t thread;
  counter = 1;
  pthread_create(&thread, 0, work, 0);
  pthread_mutex_lock(&lock);
  guarded++;
  pthread_mutex_unlock(&lock);
  counter++;
  pthread_join(thread, 0);
  // The end of the other thread is before this.
  return counter + guarded + ready - counter - guarded - ready;
}

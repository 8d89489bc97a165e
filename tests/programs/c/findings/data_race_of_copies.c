// A structure is copied while another thread writes to it.
// run: --check-races
// finding: data-race 12
#include <pthread.h>

static struct {
  int numbers[8];
} shared, copy;

static void *work(void *arg) {
  (void)arg;
  copy = shared;
  return 0;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, work, 0);
  shared.numbers[3] = 1;
  pthread_join(thread, 0);
  return 0;
}

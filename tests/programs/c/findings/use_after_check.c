// A pointer is freed between its test and its use. At -O1 nothing else happens in between: on the checked build, the
// thread must be preempted before the check of the access, not behind it.
// run: --scheduler bounded:1 --preempt memory --no-tests
// build: -O0
// build: -O1
// finding: use-after-free 15
#include <pthread.h>
#include <stdlib.h>

static int *shared;

static void *use(void *unused) {
  (void)unused;
  int *at = *(int *volatile *)&shared;
  return at ? (void *)(long)*(volatile int *)at : NULL;
}

static void *release(void *unused) {
  (void)unused;
  int *old = shared;
  shared = NULL;
  free(old);
  return NULL;
}

int main(void) {
  shared = malloc(sizeof *shared);
  if (!shared) {
    return 1;
  }
  *shared = 3;
  pthread_t threads[2];
  pthread_create(&threads[0], NULL, use, NULL);
  pthread_create(&threads[1], NULL, release, NULL);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  return 0;
}

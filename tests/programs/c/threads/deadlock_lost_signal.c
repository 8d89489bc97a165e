// run: --scheduler bounded:1 --preempt syscalls
// finding: deadlock 27
// paths: 7
#include <pthread.h>
#include <unistd.h>
#include <sys/syscall.h>

// Who looks before it locks misses the signal.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static volatile int ready;

static void *sets(void *arg) {
  pthread_mutex_lock(&lock);
  ready = 1;
  pthread_cond_signal(&changed);
  pthread_mutex_unlock(&lock);
  return arg;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, sets, 0);
  if (!ready) {
    syscall(SYS_getpid);
    pthread_mutex_lock(&lock);
    pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
  }
  pthread_join(thread, 0);
  return 0;
}

// run: --scheduler bounded:1 --preempt syscalls
// finding: deadlock 14
// paths: 5
#include <pthread.h>
#include <unistd.h>
#include <sys/syscall.h>

// Each takes the lock that the other one wants next: where they are stopped between the two, both wait for ever.
static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER, right = PTHREAD_MUTEX_INITIALIZER;

static void both(pthread_mutex_t *first, pthread_mutex_t *second) {
  pthread_mutex_lock(first);
  syscall(SYS_getpid);
  pthread_mutex_lock(second);
  pthread_mutex_unlock(second);
  pthread_mutex_unlock(first);
}

static void *other(void *arg) {
  both(&right, &left);
  return arg;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, 0, other, 0);
  both(&left, &right);
  pthread_join(thread, 0);
  return 0;
}

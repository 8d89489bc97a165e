// exec:
#include "memory_cases.h"
#include <pthread.h>
#include <semaphore.h>

struct shared {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  pthread_barrier_t barrier;
  sem_t semaphore;
  int turn;
  int sum;
};

int main(void) {
  struct shared *shared = mmap(0, sizeof *shared, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t mutexes;
  pthread_mutexattr_init(&mutexes);
  SHOW(pthread_mutexattr_setpshared(&mutexes, PTHREAD_PROCESS_SHARED));
  pthread_mutex_init(&shared->mutex, &mutexes);
  pthread_condattr_t conditions;
  pthread_condattr_init(&conditions);
  SHOW(pthread_condattr_setpshared(&conditions, PTHREAD_PROCESS_SHARED));
  pthread_cond_init(&shared->changed, &conditions);
  pthread_barrierattr_t barriers;
  pthread_barrierattr_init(&barriers);
  SHOW(pthread_barrierattr_setpshared(&barriers, PTHREAD_PROCESS_SHARED));
  pthread_barrier_init(&shared->barrier, &barriers, 3);
  SHOW(sem_init(&shared->semaphore, 1, 0));

  // Two children take turns.
  for (int me = 0; me < 2; me++) {
    if (fork() == 0) {
      pthread_barrier_wait(&shared->barrier);
      for (int round = 0; round < 3; round++) {
        pthread_mutex_lock(&shared->mutex);
        while (shared->turn != me)
          pthread_cond_wait(&shared->changed, &shared->mutex);
        shared->sum = shared->sum * 3 + me + 1;
        shared->turn = !me;
        pthread_cond_broadcast(&shared->changed);
        pthread_mutex_unlock(&shared->mutex);
      }
      sem_post(&shared->semaphore);
      _exit(0);
    }
  }
  pthread_barrier_wait(&shared->barrier);
  SHOW(sem_wait(&shared->semaphore));
  SHOW(sem_wait(&shared->semaphore));
  printf("%d\n", shared->sum);
  wait(0);
  wait(0);

  // Who dies with a lock leaves word.
  pthread_mutexattr_setrobust(&mutexes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared->mutex, &mutexes);
  if (fork() == 0) {
    pthread_mutex_lock(&shared->mutex);
    _exit(0);
  }
  wait(0);
  printf("owner died %d\n", pthread_mutex_lock(&shared->mutex) == EOWNERDEAD);
  SHOW(pthread_mutex_consistent(&shared->mutex));
  SHOW(pthread_mutex_unlock(&shared->mutex));
  SHOW(pthread_mutex_trylock(&shared->mutex));
  return 0;
}

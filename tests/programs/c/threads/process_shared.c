// exec:
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shared {
  pthread_mutex_t mutex, robust;
  pthread_cond_t condition;
  pthread_barrier_t barrier;
  pthread_rwlock_t rw;
  sem_t semaphore, ready;
  int counter, turn, stages;
} *shared;

static void init(void) {
  pthread_mutexattr_t mutex;
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &mutex);
  pthread_mutexattr_setrobust(&mutex, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared->robust, &mutex);
  pthread_condattr_t condition;
  pthread_condattr_init(&condition);
  pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
  pthread_cond_init(&shared->condition, &condition);
  pthread_barrierattr_t barrier;
  pthread_barrierattr_init(&barrier);
  pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &barrier, 3);
  pthread_rwlockattr_t rw;
  pthread_rwlockattr_init(&rw);
  pthread_rwlockattr_setpshared(&rw, PTHREAD_PROCESS_SHARED);
  pthread_rwlock_init(&shared->rw, &rw);
  sem_init(&shared->semaphore, 1, 0);
  sem_init(&shared->ready, 1, 0);
}

static void counts(void) {
  for (int i = 0; i < 100; i++) {
    pthread_mutex_lock(&shared->mutex);
    int seen = shared->counter;
    if (i % 10 == 0)
      sched_yield();
    shared->counter = seen + 1;
    pthread_mutex_unlock(&shared->mutex);
  }
}

static void takes_turns(int own) {
  for (int i = 0; i < 5; i++) {
    pthread_mutex_lock(&shared->mutex);
    while (shared->turn != own)
      pthread_cond_wait(&shared->condition, &shared->mutex);
    shared->turn = !own;
    shared->stages++;
    pthread_cond_broadcast(&shared->condition);
    pthread_mutex_unlock(&shared->mutex);
  }
}

static void *holds(void *arg) {
  pthread_mutex_lock(&shared->robust);
  sem_post(&shared->ready);
  for (;;)
    pause();
  return arg;
}

static pid_t start(void) {
  fflush(stdout);
  return fork();
}

int main(void) {
  shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  init();
  pid_t children[2];
  for (int i = 0; i < 2; i++)
    if (!(children[i] = start())) {
      counts();
      _exit(0);
    }
  counts();
  for (int i = 0; i < 2; i++)
    waitpid(children[i], 0, 0);
  printf("counter %d\n", shared->counter);

  if (!(children[0] = start())) {
    takes_turns(1);
    _exit(0);
  }
  takes_turns(0);
  waitpid(children[0], 0, 0);
  printf("stages %d turn %d\n", shared->stages, shared->turn);

  for (int i = 0; i < 2; i++)
    if (!(children[i] = start()))
      _exit(pthread_barrier_wait(&shared->barrier) == PTHREAD_BARRIER_SERIAL_THREAD);
  int serial = pthread_barrier_wait(&shared->barrier) == PTHREAD_BARRIER_SERIAL_THREAD, status;
  for (int i = 0; i < 2; i++) {
    waitpid(children[i], &status, 0);
    serial += WEXITSTATUS(status);
  }
  printf("serial %d\n", serial);

  if (!(children[0] = start())) {
    sem_wait(&shared->semaphore);
    _exit(5);
  }
  usleep(1000);
  sem_post(&shared->semaphore);
  waitpid(children[0], &status, 0);
  printf("semaphore %d\n", WEXITSTATUS(status));

  pthread_rwlock_wrlock(&shared->rw);
  if (!(children[0] = start())) {
    int busy = pthread_rwlock_tryrdlock(&shared->rw) == EBUSY;
    sem_post(&shared->ready);
    _exit(busy ? pthread_rwlock_rdlock(&shared->rw) + 3 : 1);
  }
  sem_wait(&shared->ready);
  usleep(10000);
  pthread_rwlock_unlock(&shared->rw);
  waitpid(children[0], &status, 0);
  printf("rwlock %d\n", WEXITSTATUS(status));

  // Owners that die: by exit, by a signal, with the lock held by another thread.
  if (!(children[0] = start())) {
    pthread_mutex_lock(&shared->robust);
    _exit(0);
  }
  waitpid(children[0], 0, 0);
  int got = pthread_mutex_lock(&shared->robust);
  printf("exited: %s", strerror(got));
  printf(" %d", pthread_mutex_consistent(&shared->robust));
  printf(" %d\n", pthread_mutex_unlock(&shared->robust));
  if (!(children[0] = start())) {
    pthread_t thread;
    pthread_create(&thread, 0, holds, 0);
    for (;;)
      pause();
  }
  sem_wait(&shared->ready);
  printf("held: %s\n", strerror(pthread_mutex_trylock(&shared->robust)));
  kill(children[0], SIGKILL);
  got = pthread_mutex_lock(&shared->robust);
  printf("killed: %s\n", strerror(got));
  waitpid(children[0], &status, 0);
  printf("signal %d\n", WTERMSIG(status));
  pthread_mutex_consistent(&shared->robust);
  pthread_mutex_unlock(&shared->robust);
  printf("usable %d\n", pthread_mutex_lock(&shared->robust));
  return 0;
}

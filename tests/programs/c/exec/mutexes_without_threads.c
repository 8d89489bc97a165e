// exec:
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static void initialise(void) { puts("once"); }

int main(void) {
  pthread_mutex_lock(&mutex);
  printf("%d\n", pthread_mutex_trylock(&mutex) != 0);
  pthread_mutex_unlock(&mutex);
  pthread_once(&once, initialise);
  pthread_once(&once, initialise);
  pthread_key_create(&key, NULL);
  pthread_setspecific(key, "specific");
  puts(pthread_getspecific(key));
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_t recursive;
  pthread_mutex_init(&recursive, &attributes);
  printf("%d", pthread_mutex_lock(&recursive));
  printf("%d", pthread_mutex_lock(&recursive));
  printf("%d", pthread_mutex_unlock(&recursive));
  printf("%d\n", pthread_mutex_unlock(&recursive));
  pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
  printf("%d %d\n", pthread_rwlock_rdlock(&rwlock), pthread_rwlock_tryrdlock(&rwlock));
  sem_t semaphore;
  sem_init(&semaphore, 0, 2);
  printf("%d %d %d\n", sem_trywait(&semaphore), sem_trywait(&semaphore), sem_trywait(&semaphore));
  printf("%d\n", pthread_equal(pthread_self(), pthread_self()) != 0);
  return 0;
}

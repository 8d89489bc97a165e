// run:
// paths: 1
// Of threads that are bound to one processor, the one with the highest real-time priority runs; a futex wakes it first.
// Without the binding, they may run at the same time. (Not run on a real kernel: it asks for privileges.)
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char order[8];
static atomic_int started, released;

static void *waits(void *name) {
  started++;
  pthread_mutex_lock(&mutex);
  strcat(order, name);
  pthread_mutex_unlock(&mutex);
  return 0;
}

static void *works(void *rest) {
  for (int i = 0; i < 300; i++)
    sched_yield();
  atomic_fetch_add((atomic_int *)rest, 1);
  return 0;
}

static void *spins(void *rest) {
  (void)rest;
  while (!released)
    sched_yield();
  return 0;
}

static pthread_t start(int priority, void *(*work)(void *), void *with) {
  pthread_attr_t attributes;
  struct sched_param parameter = {.sched_priority = priority};
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
  pthread_attr_setschedparam(&attributes, &parameter);
  assert(pthread_create(&thread, &attributes, work, with) == 0);
  return thread;
}

int main(void) {
  // Not bound: a thread of high priority that waits in a loop does not keep others from running.
  pthread_t spinning = start(50, spins, 0);
  released = 1;
  pthread_join(spinning, 0);

  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  assert(sched_setaffinity(0, sizeof first, &first) == 0);
  struct sched_param own = {.sched_priority = 1};
  assert(pthread_setschedparam(pthread_self(), SCHED_FIFO, &own) == 0);

  // A thread of higher priority runs at once, until it is done.
  atomic_int done = 0;
  pthread_t worker = start(2, works, &done);
  assert(done == 1);
  pthread_join(worker, 0);

  // Each of them waits for the mutex as soon as it is created. The last one gets it first.
  pthread_mutex_lock(&mutex);
  pthread_t low = start(5, waits, "l"), medium = start(10, waits, "m"), high = start(20, waits, "h");
  assert(started == 3 && order[0] == 0);
  pthread_mutex_unlock(&mutex);
  assert(strcmp(order, "hml") == 0);
  pthread_join(low, 0);
  pthread_join(medium, 0);
  pthread_join(high, 0);
  return 0;
}

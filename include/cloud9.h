/* cloud9.h: the testing interface of Cloud9, under its names, for programs that were written for it.
 * everett.h says what each does. */

#ifndef CLOUD9_H
#define CLOUD9_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <everett.h>

/* Requests of ioctl on a descriptor; the argument has the directions, RD, WR or both, or is 0 for none. */
#define SIO_SYMBOLIC 0x45560001     /* RD: what is read is symbolic */
#define SIO_PKT_FRAGMENT 0x45560002 /* RD: what is read arrives in pieces, in all ways */
#define SIO_FAULT_INJ 0x45560003    /* RD, WR: calls that read, that write may fail; others for any of them */

/* The first two refuse WR with EINVAL: mark the descriptor that reads. */
#define RD 1
#define WR 2

/* Schedulers. */
#define CLOUD9_ROUND_ROBIN EVERETT_ROUND_ROBIN
#define CLOUD9_EXHAUSTIVE EVERETT_EXHAUSTIVE
#define CLOUD9_BOUNDED EVERETT_BOUNDED

/* Cloud9 passes an array alone; its size is known to the compiler. */
#define cloud9_make_symbolic(array) everett_make_symbolic((array), sizeof(array), #array)

static inline void cloud9_fi_enable(void) { everett_faults_enable(); }
static inline void cloud9_fi_disable(void) { everett_faults_disable(); }
static inline void cloud9_set_max_heap(size_t bytes) { everett_set_max_heap(bytes); }
static inline void cloud9_set_scheduler(int kind, uint64_t number) {
  everett_set_scheduler(kind, number);
}

/* The primitives that Cloud9's model of POSIX is built of (its Table 1), for models of other environments.
 * They are made of the threads, processes and mappings of the modelled Linux, so schedulers, findings and
 * native replay treat them as those. As in Cloud9, an enabled thread runs until it sleeps, is preempted here,
 * or ends, where the scheduler is round-robin and its turn is long enough; under others, what threads share
 * needs a lock. */

typedef uint64_t wlist_id_t;

/* What cloud9_get_context says; the first thread and process have their numbers from the kernel. */
__attribute__((weak)) __thread uint64_t cloud9_own_tid;
__attribute__((weak)) int32_t cloud9_own_pid;

/* Processes that are forked later share the object. It has to consist of whole pages that mmap has given: of
 * others the neighbours would be shared, too (EINVAL), and sharing a program's own globals, stack or heap is
 * not modelled. */
static inline int cloud9_make_shared(void *object, size_t size) {
  size_t page = 4096;
  if (size == 0 || (uintptr_t)object % page || size % page) {
    errno = EINVAL;
    return -1;
  }
  void *kept = malloc(size);
  if (!kept) return -1;
  memcpy(kept, object, size);
  int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED;
  void *shared = mmap(object, size, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (shared != MAP_FAILED) memcpy(shared, kept, size);
  free(kept);
  return shared == MAP_FAILED ? -1 : 0;
}

struct cloud9_thread {
  uint64_t tid;
  void *(*start)(void *);
  void *argument;
};

static inline void *cloud9_thread_main(void *given) {
  struct cloud9_thread thread = *(struct cloud9_thread *)given;
  free(given);
  cloud9_own_tid = thread.tid;
  return thread.start(thread.argument);
}

/* A thread of this process, under a number that the caller chooses. 0, or -1 if there can be none. */
static inline int cloud9_thread_create(uint64_t tid, void *(*start)(void *), void *argument) {
  struct cloud9_thread *thread = (struct cloud9_thread *)malloc(sizeof *thread);
  pthread_t made;
  if (!thread) return -1;
  thread->tid = tid;
  thread->start = start;
  thread->argument = argument;
  int error = pthread_create(&made, NULL, cloud9_thread_main, thread);
  if (error) {
    free(thread);
    errno = error;
    return -1;
  }
  return pthread_detach(made) ? -1 : 0;
}

/* Ends this thread; the process goes on as long as it has others. */
__attribute__((noreturn)) static inline void cloud9_thread_terminate(void) { pthread_exit(NULL); }

/* A copy of this process, under a number that the caller chooses: 0 in the copy, the number in the original,
 * -1 if there can be none. */
static inline int32_t cloud9_process_fork(int32_t pid) {
  pid_t child = fork();
  if (child < 0) return -1;
  if (child > 0) return pid;
  cloud9_own_pid = pid;
  return 0;
}

/* Ends this process with all its threads. */
__attribute__((noreturn)) static inline void cloud9_process_terminate(void) { _exit(0); }

/* The numbers of this thread and process. */
static inline void cloud9_get_context(uint64_t *tid, int32_t *pid) {
  if (tid) *tid = cloud9_own_tid ? cloud9_own_tid : (uint64_t)syscall(SYS_gettid);
  if (pid) *pid = cloud9_own_pid ? cloud9_own_pid : (int32_t)getpid();
}

/* Another thread may run. */
static inline void cloud9_thread_preempt(void) { sched_yield(); }

/* A waiting queue: threads are woken in the order in which they went to sleep. Processes that are forked
 * later have it. */
struct cloud9_wlist {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  uint64_t asleep, woken;
};

/* A new waiting queue; 0 if there can be none. */
static inline wlist_id_t cloud9_get_wlist(void) {
  struct cloud9_wlist *list = (struct cloud9_wlist *)mmap(
      NULL, sizeof *list, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (list == MAP_FAILED) return 0;
  pthread_mutexattr_t lock;
  pthread_condattr_t changed;
  pthread_mutexattr_init(&lock);
  pthread_condattr_init(&changed);
  pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
  pthread_condattr_setpshared(&changed, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&list->lock, &lock);
  pthread_cond_init(&list->changed, &changed);
  return (wlist_id_t)(uintptr_t)list;
}

/* This thread sleeps until it is woken. */
static inline void cloud9_thread_sleep(wlist_id_t id) {
  struct cloud9_wlist *list = (struct cloud9_wlist *)(uintptr_t)id;
  pthread_mutex_lock(&list->lock);
  uint64_t turn = list->asleep++;
  while (list->woken <= turn) pthread_cond_wait(&list->changed, &list->lock);
  pthread_mutex_unlock(&list->lock);
}

static inline void cloud9_wake(wlist_id_t id, int all) {
  struct cloud9_wlist *list = (struct cloud9_wlist *)(uintptr_t)id;
  pthread_mutex_lock(&list->lock);
  if (list->woken < list->asleep) {
    list->woken = all ? list->asleep : list->woken + 1;
    pthread_cond_broadcast(&list->changed);
  }
  pthread_mutex_unlock(&list->lock);
}

/* Wakes the thread that has slept longest, or all that sleep. Without a sleeping thread nothing happens. */
static inline void cloud9_thread_notify(wlist_id_t id) { cloud9_wake(id, 0); }
static inline void cloud9_thread_notify_all(wlist_id_t id) { cloud9_wake(id, 1); }

#endif

// exec:
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static sem_t ready;
static volatile int stop;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *runs(void *arg) {
  sem_post(&ready);
  while (!stop)
    usleep(1000);
  return arg;
}

static void before_one(void) { puts("prepare 1"); }
static void parent_one(void) { puts("parent 1"); }
static void child_one(void) { puts("child 1"); }
static void before_two(void) {
  puts("prepare 2");
  pthread_mutex_lock(&mutex);
}
static void parent_two(void) {
  pthread_mutex_unlock(&mutex);
  puts("parent 2");
}
static void child_two(void) {
  pthread_mutex_unlock(&mutex);
  puts("child 2");
}

static void *in_new_child(void *arg) {
  puts("a thread of the child");
  return arg;
}

static volatile pthread_t took;
static volatile int signals;
static void note(int signal) {
  took = pthread_self();
  signals++;
  (void)signal;
}

static void *forks(void *arg) {
  pid_t child = fork();
  if (!child)
    _exit(getpid() == gettid() ? 21 : 22);
  int status;
  waitpid(child, &status, 0);
  return arg ? arg : (void *)(long)WEXITSTATUS(status);
}

static void *waits_for_signal(void *arg) {
  sigset_t set;
  int got = 0;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sem_post(&ready);
  sigwait(&set, &got);
  return arg ? arg : (void *)(long)got;
}

int main(void) {
  sem_init(&ready, 0, 0);
  pthread_t thread, waiter;
  pthread_create(&thread, 0, runs, 0);
  sem_wait(&ready);
  pthread_atfork(before_one, parent_one, child_one);
  pthread_atfork(before_two, parent_two, child_two);
  fflush(stdout);
  int status, order[2];
  pipe(order);
  pid_t child = fork();
  if (!child) {
    pthread_t own;
    pthread_create(&own, 0, in_new_child, 0);
    printf("join %d\n", pthread_join(own, 0));
    printf("free %d\n", pthread_mutex_trylock(&mutex));
    fflush(stdout);
    _exit(9);
  }
  waitpid(child, &status, 0);
  printf("exit %d\n", WEXITSTATUS(status));
  fflush(stdout);
  void *result;
  pthread_create(&waiter, 0, forks, 0);
  pthread_join(waiter, &result);
  printf("forked by a thread %ld\n", (long)result);

  // Signals to threads.
  struct sigaction action = {0};
  action.sa_handler = note;
  sigaction(SIGUSR1, &action, 0);
  printf("pthread_kill %d\n", pthread_kill(thread, SIGUSR1));
  while (!signals)
    usleep(1000);
  printf("taken by it %d\n", pthread_equal(took, thread));
  printf("bad signal %s\n", strerror(pthread_kill(thread, 99)));
  printf("exists %d\n", pthread_kill(thread, 0));
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, &old);
  signals = 0;
  kill(getpid(), SIGUSR1);
  while (!signals)
    usleep(1000);
  printf("the one that does not block takes it %d\n", pthread_equal(took, thread));
  sigaddset(&set, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &set, 0);
  pthread_create(&waiter, 0, waits_for_signal, 0);
  sem_wait(&ready);
  pthread_kill(waiter, SIGUSR2);
  pthread_join(waiter, &result);
  printf("sigwait %d\n", (int)(long)result == SIGUSR2);
  stop = 1;
  pthread_join(thread, 0);

  // A signal that kills, kills all threads; so does exit.
  child = fork();
  if (!child) {
    stop = 0;
    pthread_create(&thread, 0, runs, 0);
    sem_wait(&ready);
    pthread_kill(thread, SIGTERM);
    for (;;)
      pause();
  }
  waitpid(child, &status, 0);
  printf("all killed %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  return 0;
}

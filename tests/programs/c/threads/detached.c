// exec:
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sem_t ready, done;
static _Atomic int finished;
static void *detached(void *arg) {
  sem_wait(&ready);
  finished++;
  sem_post(&done);
  return arg;
}
static void *detaches_itself(void *arg) {
  int got = pthread_detach(pthread_self());
  sem_post(&done);
  return got ? 0 : arg;
}
static void *outlives_main(void *arg) {
  usleep(10000);
  printf("%s goes on\n", (char *)arg);
  return 0;
}
static void at_the_end(void) { puts("at the end"); }

int main(void) {
  sem_init(&ready, 0, 0);
  sem_init(&done, 0, 0);
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  for (int i = 0; i < 3; i++)
    printf("create %d\n", pthread_create(&thread, &attributes, detached, 0));
  for (int i = 0; i < 3; i++)
    sem_post(&ready);
  for (int i = 0; i < 3; i++)
    sem_wait(&done);
  printf("finished %d\n", finished);
  pthread_create(&thread, 0, detached, 0);
  printf("detach %d\n", pthread_detach(thread));
  sem_post(&ready);
  sem_wait(&done);
  pthread_create(&thread, 0, detaches_itself, "x");
  sem_wait(&done);
  // Many threads one after the other: their stacks are given back.
  for (int i = 0; i < 300; i++) {
    pthread_create(&thread, 0, detached, 0);
    sem_post(&ready);
    pthread_join(thread, 0);
    sem_wait(&done);
  }
  printf("finished %d\n", finished);
  atexit(at_the_end);
  puts("main exits");
  pthread_create(&thread, 0, outlives_main, "it");
  pthread_exit(0);
}

// exec:
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <unistd.h>

static pthread_key_t first, second, again;
static __thread int own = 7;
static __thread char text[16] = "start";
static int destroyed;

static void destroy(void *value) {
  printf("destroy %s\n", (char *)value);
  destroyed++;
}
static int rounds;
static void sets_again(void *value) {
  if (++rounds < 3)
    pthread_setspecific(again, value);
  printf("round %d\n", rounds);
}

static void *work(void *arg) {
  printf("own %d %s\n", own, text);
  own += (int)(long)arg;
  strcpy(text, "thread");
  printf("null at first %d\n", pthread_getspecific(first) == 0);
  pthread_setspecific(first, "one");
  pthread_setspecific(second, "two");
  pthread_setspecific(again, "three");
  printf("own %d %s %s\n", own, text, (char *)pthread_getspecific(first));
  return arg;
}

static thread_local int c11 = 1;
static int c11_work(void *arg) {
  c11 += *(int *)arg;
  return c11;
}

static void *stack_size(void *arg) {
  char room[200000];
  memset(room, 1, sizeof room);
  return room[sizeof room - 1] ? arg : 0;
}

int main(void) {
  printf("keys %d %d %d\n", pthread_key_create(&first, destroy), pthread_key_create(&second, 0),
         pthread_key_create(&again, sets_again));
  pthread_setspecific(first, "main");
  own = 100;
  pthread_t thread;
  void *result;
  for (long i = 1; i <= 2; i++) {
    rounds = 0;
    pthread_create(&thread, 0, work, (void *)i);
    pthread_join(thread, &result);
    printf("joined %ld, main has %d %s %s\n", (long)result, own, text, (char *)pthread_getspecific(first));
  }
  printf("delete %d\n", pthread_key_delete(first));
  pthread_create(&thread, 0, work, (void *)5);
  pthread_join(thread, 0);
  printf("destroyed %d\n", destroyed);

  thrd_t c11_thread;
  int add = 41, got = 0;
  thrd_create(&c11_thread, c11_work, &add);
  thrd_join(c11_thread, &got);
  printf("C11 %d %d\n", got, c11);

  pthread_attr_t attributes;
  size_t size = 0;
  pthread_attr_init(&attributes);
  printf("stack size %d", pthread_attr_setstacksize(&attributes, 1 << 20));
  pthread_attr_getstacksize(&attributes, &size);
  printf(" %zu\n", size);
  printf("small %s\n", strerror(pthread_attr_setstacksize(&attributes, 10)));
  pthread_create(&thread, &attributes, stack_size, "fits");
  pthread_join(thread, &result);
  printf("%s\n", (char *)result);
  int state = -1;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_getdetachstate(&attributes, &state);
  printf("detached %d\n", state == PTHREAD_CREATE_DETACHED);
  printf("self %d\n", pthread_equal(pthread_self(), pthread_self()));
  char name[16];
  printf("setname %d", pthread_setname_np(pthread_self(), "worker"));
  printf(" %s\n", pthread_getname_np(pthread_self(), name, sizeof name) == 0 ? name : "?");
  return 0;
}

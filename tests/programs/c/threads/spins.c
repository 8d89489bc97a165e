// A thread that waits in a loop for another one, which sleeps for a second: time passes at once. A loop that counts is
// no such loop.
// exec:
// run: --max-instructions 30000000
// paths: 1
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static volatile int over, alarms;
static pthread_spinlock_t lock;

static void *let_go(void *unused) {
  sleep(1);
  over = 1;
  usleep(100000);
  pthread_spin_unlock(&lock);
  return unused;
}

static void count(int signal) { alarms += signal == SIGALRM; }

static long milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(void) {
  pthread_t thread;
  pthread_spin_init(&lock, 0);
  pthread_spin_lock(&lock);
  long start = milliseconds();
  pthread_create(&thread, 0, let_go, 0);
  while (!over) {
  }
  printf("a second: %d\n", milliseconds() - start >= 1000);
  pthread_spin_lock(&lock);
  printf("and more: %d\n", milliseconds() - start >= 1100);
  pthread_join(thread, 0);

  // A signal ends the wait, too.
  signal(SIGALRM, count);
  start = milliseconds();
  ualarm(200000, 0);
  while (!alarms) {
  }
  printf("an alarm: %d\n", milliseconds() - start >= 200);
  unsigned long sum = 0;
  for (volatile int i = 0; i < 300000; i++) sum += (unsigned long)i;
  printf("%lu\n", sum);
  return 0;
}

// Threads that wait at a gate under the usual scheduler, do their work while all orders are tried, and end under the
// usual one again: so that the number of orders is known.
#include <everett.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int gate, over, finished;

static void wait_at(volatile int *word) {
  while (!*word)
    syscall(SYS_futex, word, FUTEX_WAIT, 0, 0);
}

static void open_gate(volatile int *word) {
  *word = 1;
  syscall(SYS_futex, word, FUTEX_WAKE, 100);
}

static void work(long number);

static void *worker(void *number) {
  wait_at(&gate);
  work((long)number);
  // The last one ends the experiment, and all others wait for it.
  if (++finished == WORKERS) {
    everett_set_scheduler(EVERETT_ROUND_ROBIN, 0);
    open_gate(&over);
  } else {
    wait_at(&over);
  }
  return 0;
}

static void experiment(int scheduler, int most) {
  pthread_t threads[WORKERS];
  for (long i = 0; i < WORKERS; i++)
    pthread_create(&threads[i], 0, worker, (void *)i);
  usleep(1000);
  open_gate(&gate);
  everett_set_scheduler(scheduler, most);
  wait_at(&over);
  for (int i = 0; i < WORKERS; i++)
    pthread_join(threads[i], 0);
}

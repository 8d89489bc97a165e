// exec:
// Readers and writers that wait for each other, and signals that end their waits.
#include "asleep.h"
#include "io_cases.h"

static volatile int handled;
static void handler(int signal) { handled += signal; }

static void on(int signal, int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(signal, &action, NULL);
}

static char large[300000];
static int ends[2];

static void *write_large(void *unused) {
  (void)unused;
  return (void *)write(ends[1], large, sizeof large);
}

static void *read_one(void *unused) {
  char byte;
  (void)unused;
  return (void *)(read(ends[0], &byte, 1) == 1 ? (long)byte : -1L);
}

int main(void) {
  for (size_t i = 0; i < sizeof large; i++)
    large[i] = (char)(i * 7 + i / 251);
  pipe(ends);
  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, write_large, NULL);
  static char copy[sizeof large + 10000];
  long total = 0, got, reads = 0;
  while (total < (long)sizeof large && (got = read(ends[0], copy + total, 10000)) > 0)
    total += got, reads++;
  pthread_join(thread, &result);
  printf("written %ld, read %ld, same %d, several reads %d\n", (long)result, total,
         !memcmp(large, copy, sizeof large), reads >= 30);

  pthread_t readers[3];
  long sum = 0;
  for (int i = 0; i < 3; i++)
    pthread_create(&readers[i], NULL, read_one, NULL);
  sleep_ms(5);
  write(ends[1], "\1\2\3", 3);
  for (int i = 0; i < 3; i++) {
    pthread_join(readers[i], &result);
    sum += (long)result;
  }
  SHOW(sum);

  // A signal without SA_RESTART ends a wait, one with it does not.
  on(SIGUSR1, 0);
  pid_t self = getpid(), child = fork_flushed();
  if (!child) {
    until_asleep(self);
    kill(self, SIGUSR1);
    end_child(0);
  }
  char byte;
  SHOW(read(ends[0], &byte, 1));
  SHOW(handled);
  wait_for(child);
  on(SIGUSR1, SA_RESTART);
  child = fork_flushed();
  if (!child) {
    until_asleep(self);
    kill(self, SIGUSR1);
    sleep_ms(20);
    until_asleep(self);
    write(ends[1], "k", 1);
    end_child(0);
  }
  SHOW(read(ends[0], &byte, 1));
  SHOW(handled);
  wait_for(child);

  // A write that waits gives back what it had written.
  on(SIGUSR1, 0);
  child = fork_flushed();
  if (!child) {
    until_asleep(self);
    kill(self, SIGUSR1);
    end_child(0);
  }
  SHOW(write(ends[1], large, 100000));
  wait_for(child);
  int count;
  ioctl(ends[0], FIONREAD, &count);
  SHOW(count);
  child = fork_flushed();
  if (!child) {
    until_asleep(self);
    kill(self, SIGUSR1);
    end_child(0);
  }
  SHOW(write(ends[1], large, 1));
  wait_for(child);
  SHOW(handled);

  // Small writes of several children are not torn apart.
  int p[2];
  pipe(p);
  pid_t children[3];
  for (int i = 0; i < 3; i++) {
    children[i] = fork_flushed();
    if (!children[i]) {
      char record[512];
      memset(record, 'a' + i, sizeof record);
      for (int j = 0; j < 200; j++)
        write(p[1], record, sizeof record);
      end_child(0);
    }
  }
  close(p[1]);
  char record[512];
  int whole = 0, torn = 0;
  while (read(p[0], record, 512) == 512) {
    int same = 1;
    for (int j = 1; j < 512; j++)
      same &= record[j] == record[0];
    whole += same;
    torn += !same;
  }
  printf("whole %d torn %d\n", whole, torn);
  for (int i = 0; i < 3; i++)
    wait_for(children[i]);
  return 0;
}

// exec:
// What happens when an end is closed, and who gets SIGPIPE.
#include "io_cases.h"

static volatile int signals;
static void count(int signal) { signals += signal; }

int main(void) {
  int p[2];
  char buffer[64];
  pipe(p);
  write(p[1], "left over", 9);
  close(p[1]);
  EVENTS(p[0]);
  SHOW(read(p[0], buffer, 4));
  SHOW(read(p[0], buffer, 64));
  SHOW(read(p[0], buffer, 64));
  EVENTS(p[0]);
  close(p[0]);
  SHOW(read(p[0], buffer, 1));
  SHOW(close(p[0]));

  signal(SIGPIPE, SIG_IGN);
  pipe(p);
  close(p[0]);
  EVENTS(p[1]);
  SHOW(write(p[1], "x", 1));
  SHOW(write(p[1], "x", 0));
  signal(SIGPIPE, count);
  SHOW(write(p[1], "x", 1));
  printf("signals %d\n", signals);
  close(p[1]);

  // A second descriptor keeps the end open.
  pipe(p);
  int second = dup(p[1]);
  close(p[1]);
  EVENTS(p[0]);
  SHOW(write(second, "abc", 3));
  SHOW(read(p[0], buffer, 64));
  close(second);
  SHOW(read(p[0], buffer, 64));
  close(p[0]);

  // So does a child, until it ends.
  pipe(p);
  pid_t child = fork_flushed();
  if (!child) {
    close(p[0]);
    write(p[1], "from child", 10);
    end_child(3);
  }
  close(p[1]);
  long got, total = 0;
  while ((got = read(p[0], buffer, 64)) > 0)
    total += got;
  SHOW(total);
  SHOW(wait_for(child));
  close(p[0]);

  // Killed by SIGPIPE.
  pipe(p);
  child = fork_flushed();
  if (!child) {
    signal(SIGPIPE, SIG_DFL);
    close(p[0]);
    // Until the parent has closed its end, too.
    struct pollfd broken = {p[1], 0, 0};
    poll(&broken, 1, -1);
    write(p[1], "x", 1);
    end_child(0);
  }
  close(p[0]);
  SHOW(wait_for(child));
  close(p[1]);

  // Half of a large write is read, then the reader goes away.
  signals = 0;
  pipe(p);
  child = fork_flushed();
  if (!child) {
    close(p[1]);
    long all = 0;
    while (all < 100000)
      all += read(p[0], buffer, 50);
    end_child(0);
  }
  close(p[0]);
  static char large[1 << 20];
  long written = write(p[1], large, sizeof large);
  printf("part of it %d, signals %d\n", written >= 100000 && written < (long)sizeof large, signals);
  SHOW(wait_for(child));
  SHOW(write(p[1], large, 1));

  // Both ends through /proc are not needed for a loop with oneself.
  pipe(p);
  write(p[1], "12345678", 8);
  SHOW(read(p[0], buffer, 3));
  SHOW(write(p[1], "9", 1));
  buffer[read(p[0], buffer, 64)] = 0;
  puts(buffer);
  return 0;
}

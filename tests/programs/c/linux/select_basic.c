// exec:
#include "io_cases.h"

static fd_set in, out, except;

static void fill(int a, int b) {
  FD_ZERO(&in);
  FD_ZERO(&out);
  FD_ZERO(&except);
  if (a >= 0)
    FD_SET(a, &in);
  if (b >= 0)
    FD_SET(b, &out);
}

static volatile int handled;
static void handler(int signal) { handled = signal; }

// Bits beyond the table of descriptors are not looked at. A child's table has the 64 places that all have, if nothing
// higher is open; it grows with descriptors that are opened, and does not shrink.
static void in_small_table(int readable) {
  struct timeval none = {0, 0};
  fill(readable, 63);
  SHOW(select(64, &in, &out, &except, &none));
  fill(readable, 64);
  SHOW(select(65, &in, &out, &except, &none));
  printf("in %d out %d\n", !!FD_ISSET(readable, &in), !!FD_ISSET(64, &out));
  fill(readable, 1000);
  SHOW(select(1024, &in, &out, &except, &none));
  printf("in %d out %d\n", !!FD_ISSET(readable, &in), !!FD_ISSET(1000, &out));
  SHOW(dup2(readable, 130));
  fill(130, 256);
  SHOW(select(257, &in, &out, &except, &none));
  fill(130, 255);
  SHOW(select(256, &in, &out, &except, &none));
  SHOW(close(130));
  fill(readable, 255);
  SHOW(select(256, &in, &out, &except, &none));
}

static void table_of_descriptors(int readable) {
  SHOW(dup2(readable, 700));
  // Also what whoever started this process has left open.
  SHOW(syscall(SYS_close_range, 64, ~0u, 0));
  struct timeval none = {0, 0};
  fill(readable, 700);
  SHOW(select(701, &in, &out, &except, &none));
  pid_t child = fork_flushed();
  if (!child) {
    in_small_table(readable);
    end_child(0);
  }
  SHOW(wait_for(child));
}

int main(void) {
  int p[2];
  char buffer[16];
  pipe(p);
  struct timeval none = {0, 0}, some = {0, 3000};
  fill(p[0], p[1]);
  SHOW(select(p[1] + 1, &in, &out, &except, &none));
  printf("in %d out %d\n", !!FD_ISSET(p[0], &in), !!FD_ISSET(p[1], &out));
  fill(p[0], -1);
  SHOW(select(p[1] + 1, &in, &out, &except, &some));
  printf("in %d, time left %ld.%06ld\n", !!FD_ISSET(p[0], &in), (long)some.tv_sec,
         (long)some.tv_usec);
  write(p[1], "abc", 3);
  fill(p[0], p[1]);
  SHOW(select(p[1] + 1, &in, &out, &except, NULL));
  printf("in %d out %d\n", !!FD_ISSET(p[0], &in), !!FD_ISSET(p[1], &out));
  fill(p[0], p[1]);
  SHOW(select(p[1] + 1, &in, NULL, NULL, NULL));
  fill(p[0], p[1]);
  SHOW(select(p[0], &in, &out, &except, &none));
  printf("beyond: in %d out %d\n", !!FD_ISSET(p[0], &in), !!FD_ISSET(p[1], &out));
  SHOW(select(-1, &in, &out, &except, &none));
  table_of_descriptors(p[0]);
  struct timeval negative = {-1, 0};
  fill(p[0], -1);
  SHOW(select(p[1] + 1, &in, NULL, NULL, &negative));
  read(p[0], buffer, 16);
  close(p[1]);
  fill(p[0], -1);
  FD_SET(p[0], &except);
  SHOW(select(p[0] + 1, &in, NULL, &except, NULL));
  printf("hang-up: in %d except %d\n", !!FD_ISSET(p[0], &in), !!FD_ISSET(p[0], &except));
  struct timeval much = {0, 0};
  SHOW(select(0, NULL, NULL, NULL, &much));
  int null = open("/dev/null", O_RDWR);
  fill(null, null);
  FD_SET(null, &except);
  SHOW(select(null + 1, &in, &out, &except, NULL));

  int q[2];
  pipe(q);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  sigset_t blocked, old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigprocmask(SIG_BLOCK, &blocked, &old);
  raise(SIGUSR1);
  struct timespec zero = {0, 0}, five = {0, 5000000};
  fill(q[0], -1);
  SHOW(pselect(q[0] + 1, &in, NULL, NULL, &zero, NULL));
  printf("handled %d\n", handled);
  fill(q[0], -1);
  SHOW(pselect(q[0] + 1, &in, NULL, NULL, &five, &old));
  printf("handled %d\n", handled);
  handled = 0;
  raise(SIGUSR1);
  fill(q[0], -1);
  SHOW(pselect(q[0] + 1, &in, NULL, NULL, &zero, &old));
  printf("handled %d\n", handled);
  handled = 0;
  raise(SIGUSR1);
  fill(-1, q[1]);
  SHOW(pselect(q[1] + 1, NULL, &out, NULL, &five, &old));
  printf("handled %d\n", handled);
  sigset_t now;
  sigprocmask(SIG_SETMASK, NULL, &now);
  printf("still blocked %d\n", sigismember(&now, SIGUSR1));
  sigprocmask(SIG_SETMASK, &old, NULL);
  printf("handled %d\n", handled);
  pid_t child = fork_flushed();
  if (!child) {
    sleep_ms(10);
    write(q[1], "z", 1);
    end_child(0);
  }
  fill(q[0], -1);
  SHOW(select(q[0] + 1, &in, NULL, NULL, NULL));
  SHOW(wait_for(child));
  return 0;
}

// The kernel fills a buffer while another thread writes to it.
// run: --check-races
// finding: data-race 13
// survives: data-race the kernel makes the access, which no breakpoint sees
#include <pthread.h>
#include <unistd.h>

static char buffer[16];
static int ends[2];

static void *work(void *arg) {
  (void)arg;
  read(ends[0], buffer, sizeof buffer);
  return 0;
}

int main(void) {
  pthread_t thread;
  pipe(ends);
  write(ends[1], "0123456789abcdef", 16);
  pthread_create(&thread, 0, work, 0);
  buffer[5] = 1;
  pthread_join(thread, 0);
  return 0;
}

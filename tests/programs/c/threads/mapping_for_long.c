// exec:
// A thread that does nothing but map memory does not keep the clock from moving.
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int over;

static void *map(void *unused) {
  while (!over) {
    char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *page = 1;
    munmap(page, 4096);
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, map, NULL);
  usleep(10000);
  over = 1;
  pthread_join(thread, NULL);
  puts("over");
  return 0;
}

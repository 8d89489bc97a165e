// exec:
#include "io_cases.h"

static int set;

static long control(int command, int fd, unsigned events, uint64_t data) {
  struct epoll_event event = {.events = events, .data.u64 = data};
  return epoll_ctl(set, command, fd, &event);
}

static void wait_and_show(const char *when, int most, int timeout) {
  struct epoll_event events[8];
  errno = 0;
  int count = epoll_wait(set, events, most, timeout);
  printf("%s: %d%s%s", when, count, count < 0 ? " " : "", count < 0 ? error_name(errno) : "");
  for (int i = 0; i < count; i++)
    printf(" [%#x %llu]", events[i].events, (unsigned long long)events[i].data.u64);
  printf("\n");
}

int main(void) {
  int a[2], b[2], c[2];
  char byte = 'x', buffer[16];
  pipe(a);
  pipe(b);
  pipe(c);
  set = epoll_create1(EPOLL_CLOEXEC);
  SHOW(fcntl(set, F_GETFD));
  SHOW(epoll_create1(~0));
  SHOW(epoll_create(0));
  SHOW(epoll_create(-1));
  wait_and_show("empty set", 8, 0);
  SHOW(control(EPOLL_CTL_ADD, a[0], EPOLLIN, 10));
  SHOW(control(EPOLL_CTL_ADD, b[0], EPOLLIN, 20));
  SHOW(control(EPOLL_CTL_ADD, c[0], EPOLLIN, 30));
  SHOW(control(EPOLL_CTL_ADD, a[0], EPOLLIN, 10));
  wait_and_show("nothing", 8, 0);
  wait_and_show("nothing for 5 ms", 8, 5);
  write(b[1], &byte, 1);
  wait_and_show("b", 8, -1);
  wait_and_show("b again", 8, -1);
  write(a[1], &byte, 1);
  wait_and_show("b a", 8, -1);
  write(c[1], &byte, 1);
  wait_and_show("one of three", 1, -1);
  wait_and_show("one of three", 1, -1);
  wait_and_show("one of three", 1, -1);
  wait_and_show("one of three", 1, -1);
  wait_and_show("two of three", 2, -1);
  wait_and_show("two of three", 2, -1);
  read(b[0], buffer, 16);
  wait_and_show("without b", 8, -1);
  SHOW(control(EPOLL_CTL_MOD, a[0], EPOLLIN, 11));
  wait_and_show("other data", 8, -1);
  SHOW(control(EPOLL_CTL_MOD, a[0], 0, 11));
  wait_and_show("nothing asked of a", 8, -1);
  close(a[1]);
  wait_and_show("hang-up of a", 8, -1);
  SHOW(control(EPOLL_CTL_DEL, a[0], 0, 0));
  SHOW(control(EPOLL_CTL_DEL, a[0], 0, 0));
  SHOW(control(EPOLL_CTL_MOD, a[0], EPOLLIN, 0));
  SHOW(epoll_ctl(set, EPOLL_CTL_DEL, c[0], NULL));
  wait_and_show("all gone", 8, 0);
  SHOW(control(EPOLL_CTL_ADD, b[1], EPOLLIN | EPOLLOUT, 21));
  wait_and_show("b can be written", 8, -1);
  close(b[0]);
  wait_and_show("nobody reads b", 8, -1);
  SHOW(control(EPOLL_CTL_ADD, 999, EPOLLIN, 0));
  SHOW(control(EPOLL_CTL_ADD, set, EPOLLIN, 0));
  SHOW(control(77, c[0], EPOLLIN, 0));
  SHOW(epoll_ctl(a[0], EPOLL_CTL_ADD, c[0], &(struct epoll_event){.events = EPOLLIN}));
  SHOW(epoll_ctl(999, EPOLL_CTL_ADD, c[0], &(struct epoll_event){.events = EPOLLIN}));
  int null = open("/dev/null", O_RDWR), folder = open("/tmp", O_RDONLY | O_DIRECTORY);
  SHOW(control(EPOLL_CTL_ADD, null, EPOLLIN, 0));
  SHOW(control(EPOLL_CTL_ADD, folder, EPOLLIN, 0));
  // Files are always ready, so they cannot be watched; a path is no open file.
  int file = open("/tmp/everett-epoll-level", O_CREAT | O_RDWR, 0600), path = open("/tmp", O_PATH);
  for (int command = EPOLL_CTL_ADD; command <= EPOLL_CTL_MOD; command++) {
    SHOW(control(command, file, EPOLLIN, 0));
    SHOW(control(command, path, EPOLLIN, 0));
  }
  SHOW(control(77, file, EPOLLIN, 0));
  SHOW(epoll_ctl(set, EPOLL_CTL_DEL, file, NULL));
  SHOW(epoll_ctl(path, EPOLL_CTL_ADD, c[0], &(struct epoll_event){.events = EPOLLIN}));
  SHOW(epoll_ctl(file, EPOLL_CTL_ADD, c[0], &(struct epoll_event){.events = EPOLLIN}));
  struct epoll_event events[2];
  SHOW(epoll_wait(set, events, 0, 0));
  SHOW(epoll_wait(set, events, -1, 0));
  SHOW(epoll_wait(c[0], events, 2, 0));
  SHOW(epoll_wait(999, events, 2, 0));
  SHOW(read(set, buffer, 16));
  SHOW(write(set, buffer, 16));
  return 0;
}

// exec:
// Edge-triggered and one-shot watches.
#include "io_cases.h"

static int set;

static long control(int command, int fd, unsigned events, uint64_t data) {
  struct epoll_event event = {.events = events, .data.u64 = data};
  return epoll_ctl(set, command, fd, &event);
}

static void look_at(int which, const char *when) {
  struct epoll_event events[8];
  int count = epoll_wait(which, events, 8, 0);
  printf("%s: %d", when, count);
  for (int i = 0; i < count; i++)
    printf(" [%#x %llu]", events[i].events, (unsigned long long)events[i].data.u64);
  printf("\n");
}
static void look(const char *when) { look_at(set, when); }

int main(void) {
  int p[2], q[2];
  char buffer[70000];
  memset(buffer, 'x', sizeof buffer);
  pipe2(p, O_NONBLOCK);
  pipe2(q, O_NONBLOCK);
  set = epoll_create1(0);
  control(EPOLL_CTL_ADD, p[0], EPOLLIN | EPOLLET, 1);
  look("nothing");
  write(p[1], "a", 1);
  look("written");
  look("not again");
  write(p[1], "b", 1);
  look("written more");
  look("not again");
  read(p[0], buffer, 1);
  look("one byte is left");
  write(p[1], "c", 1);
  write(p[1], "d", 1);
  look("two writes");
  read(p[0], buffer, 100);
  look("empty");
  write(p[1], "e", 1);
  read(p[0], buffer, 100);
  look("written and read");
  write(p[1], "f", 1);
  control(EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLET, 11);
  look("changed");
  control(EPOLL_CTL_MOD, p[0], EPOLLIN | EPOLLET, 12);
  look("changed again");
  control(EPOLL_CTL_ADD, p[1], EPOLLOUT | EPOLLET, 2);
  look("can be written");
  look("not again");
  write(p[1], "g", 1);
  look("only the reader");
  while (write(p[1], buffer, 4096) > 0)
    ;
  look("full");
  read(p[0], buffer, 10);
  look("ten bytes read");
  read(p[0], buffer, 4096);
  look("a page read");
  while (read(p[0], buffer, 70000) > 0)
    ;
  look("drained");
  while (write(p[1], buffer, 4096) > 0)
    ;
  while (read(p[0], buffer, 70000) > 0)
    ;
  look("filled and drained");
  close(p[1]);
  look("writer gone");
  look("not again");

  control(EPOLL_CTL_ADD, q[0], EPOLLIN | EPOLLONESHOT, 3);
  write(q[1], "a", 1);
  look("one shot");
  look("not again");
  write(q[1], "b", 1);
  look("not with more either");
  SHOW(control(EPOLL_CTL_MOD, q[0], EPOLLIN | EPOLLONESHOT, 4));
  look("armed again");
  read(q[0], buffer, 100);
  SHOW(control(EPOLL_CTL_MOD, q[0], EPOLLIN | EPOLLONESHOT | EPOLLET, 5));
  look("armed, but empty");
  write(q[1], "c", 1);
  look("now");
  close(q[1]);
  look("hang-up while off");
  SHOW(control(EPOLL_CTL_MOD, q[0], 0, 6));
  look("hang-up when on");

  int e = eventfd(0, EFD_NONBLOCK);
  uint64_t one = 1, value;
  control(EPOLL_CTL_DEL, q[0], 0, 0);
  control(EPOLL_CTL_ADD, e, EPOLLIN | EPOLLOUT | EPOLLET, 7);
  look("counter");
  write(e, &one, 8);
  look("added");
  write(e, &one, 8);
  look("added again");
  read(e, &value, 8);
  look("taken");
  look("not again");
  control(EPOLL_CTL_MOD, e, EPOLLIN | EPOLLET, 7);
  read(e, &value, 8);
  look("only in, nothing");
  write(e, &one, 8);
  look("only in");
  read(e, &value, 8);
  look("taken");

  int r[2];
  pipe(r);
  SHOW(control(EPOLL_CTL_ADD, r[0], EPOLLIN | EPOLLEXCLUSIVE, 8));
  SHOW(control(EPOLL_CTL_MOD, r[0], EPOLLIN, 8));
  SHOW(control(EPOLL_CTL_ADD, r[1], EPOLLOUT | EPOLLEXCLUSIVE | EPOLLONESHOT, 9));
  SHOW(control(EPOLL_CTL_DEL, r[0], 0, 0));
  SHOW(control(EPOLL_CTL_ADD, r[0], EPOLLIN, 8));
  SHOW(control(EPOLL_CTL_MOD, r[0], EPOLLIN | EPOLLEXCLUSIVE, 8));
  return 0;
}

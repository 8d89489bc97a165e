// exec:
// Edge-triggered epoll over other epoll instances, and over signalfds: what counts as a new event.
#include "io_cases.h"
#include <sys/signalfd.h>

static void look(int set, const char *when) {
  struct epoll_event events[4];
  int count = epoll_wait(set, events, 4, 0);
  printf("%s: %d", when, count);
  for (int i = 0; i < count; i++) printf(" [%#x %d]", events[i].events, events[i].data.fd);
  printf("\n");
}

static int watch(int set, int fd, unsigned events, int name) {
  struct epoll_event event = {.events = events, .data.fd = name};
  return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

int main(void) {
  uint64_t one = 1;
  int counter = eventfd(0, EFD_NONBLOCK), inner = epoll_create1(0), outer = epoll_create1(0);
  watch(inner, counter, EPOLLIN, 1);
  watch(outer, inner, EPOLLIN | EPOLLET, 2);
  look(outer, "nothing");
  write(counter, &one, 8);
  look(outer, "first event");
  look(outer, "seen");
  // The inner instance has it in its list already, but it is an event again.
  write(counter, &one, 8);
  look(outer, "second event");
  look(outer, "seen");
  read(counter, &one, 8);
  look(outer, "taken");
  one = 1;
  write(counter, &one, 8);
  look(outer, "third event");

  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  sigaddset(&mask, SIGRTMIN);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  int signals = signalfd(-1, &mask, SFD_NONBLOCK), set = epoll_create1(0);
  watch(set, signals, EPOLLIN | EPOLLET, 3);
  look(set, "no signal");
  kill(getpid(), SIGUSR1);
  look(set, "a signal");
  // It is pending already: nothing is sent.
  kill(getpid(), SIGUSR1);
  look(set, "the same signal");
  raise(SIGUSR1);
  look(set, "to the thread");
  raise(SIGUSR1);
  look(set, "the same to the thread");
  union sigval value = {.sival_int = 1};
  sigqueue(getpid(), SIGRTMIN, value);
  look(set, "a queued one");
  sigqueue(getpid(), SIGRTMIN, value);
  look(set, "another queued one");
  return 0;
}

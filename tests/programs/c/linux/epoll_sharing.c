// exec:
// Watches and descriptors that are copied, closed or inherited; sets within sets.
#include "asleep.h"
#include "io_cases.h"

static long control(int set, int command, int fd, unsigned events, uint64_t data) {
  struct epoll_event event = {.events = events, .data.u64 = data};
  return epoll_ctl(set, command, fd, &event);
}

static void look(int set, const char *when, int timeout) {
  struct epoll_event events[8];
  errno = 0;
  int count = epoll_wait(set, events, 8, timeout);
  printf("%s: %d%s", when, count, count < 0 ? error_name(errno) : "");
  for (int i = 0; i < count; i++)
    printf(" [%#x %llu]", events[i].events, (unsigned long long)events[i].data.u64);
  printf("\n");
}

static volatile int handled;
static void handler(int signal) { handled += signal; }
static int shared_set;
static void *wait_in_thread(void *unused) {
  struct epoll_event event;
  (void)unused;
  return (void *)(long)epoll_wait(shared_set, &event, 1, -1);
}

int main(void) {
  int set = epoll_create1(0), p[2], q[2];
  pipe(p);
  pipe(q);
  SHOW(control(set, EPOLL_CTL_ADD, p[0], EPOLLIN, 1));
  int copy = dup(p[0]);
  SHOW(control(set, EPOLL_CTL_ADD, copy, EPOLLIN, 2));
  write(p[1], "x", 1);
  look(set, "both", 0);
  close(p[0]);
  look(set, "closed one still tells", 0);
  SHOW(control(set, EPOLL_CTL_DEL, p[0], 0, 0));
  close(copy);
  look(set, "all closed", 0);

  // The descriptor is used again for something else.
  int again = eventfd(1, 0);
  printf("same number %d\n", again == p[0]);
  SHOW(control(set, EPOLL_CTL_MOD, again, EPOLLIN, 3));
  SHOW(control(set, EPOLL_CTL_ADD, again, EPOLLIN, 3));
  look(set, "new one", 0);
  close(again);
  look(set, "gone", 0);

  // A child adds its own, and the parent is told.
  int pair[2], looked[2];
  char byte;
  pipe(pair);
  pipe(looked);
  pid_t child = fork_flushed();
  if (!child) {
    int own[2];
    pipe(own);
    write(own[1], "y", 1);
    SHOW(control(set, EPOLL_CTL_ADD, own[0], EPOLLIN, 4));
    write(pair[1], "r", 1);
    read(looked[0], &byte, 1);
    end_child(0);
  }
  read(pair[0], &byte, 1);
  look(set, "of the child", 0);
  write(looked[1], "l", 1);
  wait_for(child);
  look(set, "child has ended", 0);

  // The set itself can be polled and watched.
  int outer = epoll_create1(0);
  SHOW(control(set, EPOLL_CTL_ADD, q[0], EPOLLIN, 5));
  SHOW(control(outer, EPOLL_CTL_ADD, set, EPOLLIN, 6));
  EVENTS(set);
  EVENTS(outer);
  look(outer, "nothing within", 0);
  write(q[1], "z", 1);
  EVENTS(set);
  EVENTS(outer);
  look(outer, "within", -1);
  look(set, "itself", -1);
  look(outer, "still", -1);
  read(q[0], &byte, 1);
  look(outer, "no more", 0);
  SHOW(control(outer, EPOLL_CTL_MOD, set, EPOLLIN | EPOLLET, 7));
  write(q[1], "z", 1);
  look(outer, "edge of the inner one", 0);
  look(outer, "not again", 0);
  read(q[0], &byte, 1);
  SHOW(control(set, EPOLL_CTL_ADD, outer, EPOLLIN, 8));
  SHOW(control(set, EPOLL_CTL_ADD, set, EPOLLIN, 8));
  SHOW(control(outer, EPOLL_CTL_ADD, dup(outer), EPOLLIN, 8));
  int chain[7];
  for (int i = 0; i < 7; i++)
    chain[i] = epoll_create1(0);
  for (int i = 0; i < 6; i++)
    printf("level %d: %ld\n", i, control(chain[i], EPOLL_CTL_ADD, chain[i + 1], EPOLLIN, 0));
  close(set);
  look(outer, "inner one closed", 0);

  // Threads wait in one set.
  shared_set = epoll_create1(0);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    pthread_create(&threads[i], NULL, wait_in_thread, NULL);
  sleep_ms(5);
  SHOW(control(shared_set, EPOLL_CTL_ADD, q[0], EPOLLIN, 9));
  sleep_ms(5);
  write(q[1], "w", 1);
  for (int i = 0; i < 2; i++) {
    void *result;
    pthread_join(threads[i], &result);
    printf("thread got %ld\n", (long)result);
  }

  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGUSR1, &action, NULL);
  read(q[0], &byte, 1);
  pid_t self = getpid();
  child = fork_flushed();
  if (!child) {
    until_asleep(self);
    kill(self, SIGUSR1);
    end_child(0);
  }
  look(shared_set, "signal ", -1);
  SHOW(handled);
  wait_for(child);
  sigset_t mask, old;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  sigprocmask(SIG_BLOCK, &mask, &old);
  raise(SIGUSR1);
  struct epoll_event event;
  SHOW(epoll_pwait(shared_set, &event, 1, 0, &old));
  SHOW(handled);
  SHOW(epoll_pwait(shared_set, &event, 1, 5, &mask));
  SHOW(epoll_pwait(shared_set, &event, 1, 5, &old));
  SHOW(handled);
  struct timespec some = {0, 3000000};
  SHOW(syscall(SYS_epoll_pwait2, shared_set, &event, 1, &some, NULL, 8));
  raise(SIGUSR1);
  SHOW(syscall(SYS_epoll_pwait2, shared_set, &event, 1, NULL, &old, 8));
  SHOW(handled);
  return 0;
}

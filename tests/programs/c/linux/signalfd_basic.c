// exec:
#include "io_cases.h"
#include <sys/signalfd.h>

static void take(int fd) {
  struct signalfd_siginfo info[4];
  memset(info, 0, sizeof info);
  errno = 0;
  long got = read(fd, info, sizeof info);
  printf("read %ld %s", got / 128, got < 0 ? error_name(errno) : "");
  for (long i = 0; i < got / 128; i++)
    printf(" [%u code %d int %d self %d status %d]", info[i].ssi_signo, info[i].ssi_code,
           info[i].ssi_int, info[i].ssi_pid == (unsigned)getpid(), info[i].ssi_status);
  printf("\n");
}

static int fd;
static void *wait_in_thread(void *unused) {
  take(fd);
  return unused;
}

int main(void) {
  sigset_t mask, one;
  sigemptyset(&mask);
  sigaddset(&mask, SIGUSR1);
  sigaddset(&mask, SIGUSR2);
  sigaddset(&mask, SIGRTMIN + 2);
  sigaddset(&mask, SIGCHLD);
  sigprocmask(SIG_BLOCK, &mask, NULL);
  fd = signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC);
  SHOW(fcntl(fd, F_GETFD));
  SHOW(fcntl(fd, F_GETFL) & O_NONBLOCK);
  EVENTS(fd);
  take(fd);
  kill(getpid(), SIGUSR1);
  EVENTS(fd);
  take(fd);
  take(fd);
  raise(SIGUSR2);
  raise(SIGUSR1);
  raise(SIGUSR1);
  take(fd);
  union sigval value = {.sival_int = 7};
  SHOW(sigqueue(getpid(), SIGRTMIN + 2, value));
  value.sival_int = 8;
  SHOW(sigqueue(getpid(), SIGRTMIN + 2, value));
  take(fd);
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  SHOW(signalfd(fd, &one, 0) == fd);
  raise(SIGUSR1);
  take(fd);
  raise(SIGUSR2);
  take(fd);
  SHOW(signalfd(fd, &mask, 0) == fd);
  take(fd);
  SHOW(signalfd(0, &mask, 0) == -1);
  SHOW(signalfd(999, &mask, 0));
  SHOW(signalfd(-1, &mask, 1));
  SHOW(syscall(SYS_signalfd4, -1, &mask, 4, 0));
  char small[100];
  SHOW(read(fd, small, 100));
  SHOW(write(fd, small, 100));

  pid_t child = fork_flushed();
  if (!child)
    _exit(9);
  int status;
  waitpid(child, &status, 0);
  take(fd);

  // Whoever reads gets its own signals.
  kill(getpid(), SIGUSR1);
  child = fork_flushed();
  if (!child) {
    EVENTS(fd);
    take(fd);
    raise(SIGUSR2);
    EVENTS(fd);
    take(fd);
    end_child(0);
  }
  waitpid(child, &status, 0);
  take(fd);

  fcntl(fd, F_SETFL, 0);
  sigdelset(&mask, SIGCHLD);
  SHOW(signalfd(fd, &mask, 0) == fd);
  child = fork_flushed();
  if (!child) {
    sleep_ms(10);
    kill(getppid(), SIGUSR1);
    end_child(0);
  }
  take(fd);
  waitpid(child, &status, 0);
  pthread_t thread;
  pthread_create(&thread, NULL, wait_in_thread, NULL);
  sleep_ms(5);
  kill(getpid(), SIGUSR2);
  pthread_join(thread, NULL);

  int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 3};
  SHOW(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
  SHOW(epoll_wait(set, &event, 1, 0));
  kill(getpid(), SIGUSR1);
  SHOW(epoll_wait(set, &event, 1, 100));
  SHOW(epoll_wait(set, &event, 1, 0));
  kill(getpid(), SIGUSR2);
  SHOW(epoll_wait(set, &event, 1, 100));
  take(fd);
  child = fork_flushed();
  if (!child) {
    sleep_ms(10);
    kill(getppid(), SIGUSR1);
    end_child(0);
  }
  struct pollfd entry = {fd, POLLIN, 0};
  SHOW(poll(&entry, 1, -1));
  take(fd);
  waitpid(child, &status, 0);
  return 0;
}

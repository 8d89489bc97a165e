// exec:
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void result(const char *what, long value) {
  printf("%s %ld %s\n", what, value, value < 0 ? strerror(errno) : "");
}

static int pidfd_open(pid_t pid, unsigned flags) { return syscall(434, pid, flags); }
static int pidfd_send(int fd, int signal, siginfo_t *info, unsigned flags) {
  return syscall(424, fd, signal, info, flags);
}

int main(void) {
  result("nobody", pidfd_open(999999, 0));
  result("zero", pidfd_open(0, 0));
  result("negative", pidfd_open(-5, 0));
  result("flags", pidfd_open(getpid(), 0x10000));
  pid_t child = fork();
  if (!child)
    for (;;)
      pause();
  int fd = pidfd_open(child, 0);
  printf("open %d close on exec %d\n", fd >= 0, fcntl(fd, F_GETFD) == FD_CLOEXEC);
  struct pollfd ready = {fd, POLLIN, 0};
  result("alive", poll(&ready, 1, 0));
  char byte;
  result("read", read(fd, &byte, 1));
  result("send 0", pidfd_send(fd, 0, 0, 0));
  result("send bad", pidfd_send(fd, 99, 0, 0));
  result("send flags", pidfd_send(fd, SIGTERM, 0, 5));
  result("send to a pipe", pidfd_send(1, SIGTERM, 0, 0));
  result("send", pidfd_send(fd, SIGTERM, 0, 0));
  result("dead", poll(&ready, 1, -1));
  printf("events %d\n", ready.revents & POLLIN);
  siginfo_t si;
  memset(&si, 0, sizeof si);
  result("waitid", waitid(3, fd, &si, WEXITED | WNOWAIT));
  printf("child %d killed %d by %d\n", si.si_pid == child, si.si_code == CLD_KILLED, si.si_status);
  result("zombie", pidfd_send(fd, 0, 0, 0));
  int status;
  waitpid(child, &status, 0);
  result("gone", pidfd_send(fd, 0, 0, 0));
  result("still ready", poll(&ready, 1, 0));
  printf("reaped %x\n", ready.revents);
  // A non-blocking one does not wait.
  child = fork();
  if (!child)
    for (;;)
      pause();
  fd = pidfd_open(child, O_NONBLOCK);
  result("running", waitid(3, fd, &si, WEXITED));
  result("no hang", waitid(3, fd, &si, WEXITED | WNOHANG));
  kill(child, SIGKILL);
  ready.fd = fd;
  poll(&ready, 1, -1);
  printf("zombie %x\n", ready.revents);
  result("ended", waitid(3, fd, &si, WEXITED));
  result("gone", waitid(3, fd, &si, WEXITED));
  // Without a parent that waits, the end of a process is its reaping.
  signal(SIGCHLD, SIG_IGN);
  int epoll = epoll_create1(0);
  child = fork();
  if (!child)
    for (;;)
      pause();
  fd = pidfd_open(child, 0);
  struct epoll_event event = {.events = EPOLLIN | EPOLLET};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  kill(child, SIGKILL);
  result("epoll", epoll_wait(epoll, &event, 1, -1));
  ready.fd = fd;
  while (poll(&ready, 1, -1) == 1 && !(ready.revents & POLLHUP));
  printf("reaped %x\n", ready.revents);
  return 0;
}

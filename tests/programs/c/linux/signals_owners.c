// exec:
// Owners of files, SIGIO, edge-triggered pidfds, capabilities, requests of prctl, and flags of inline assembly.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRY(call)                                                                                  \
  do {                                                                                             \
    errno = 0;                                                                                     \
    long result_ = (long)(call);                                                                   \
    printf("%s = %ld %s\n", #call, result_, result_ == -1 ? strerror(errno) : "");                 \
    fflush(stdout);                                                                                \
  } while (0)

static volatile sig_atomic_t seen, last_code, last_fd, last_band;

static void handler(int number, siginfo_t *info, void *context) {
  (void)context;
  seen = number;
  last_code = info->si_code;
  last_fd = info->si_fd;
  last_band = info->si_band;
}

static void owners(void) {
  int ends[2], on = 1, off = 0, owner = 0;
  socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  sigaction(SIGIO, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  TRY(fcntl(ends[0], F_GETOWN));
  TRY(ioctl(ends[0], FIOASYNC, &on));
  TRY(fcntl(ends[0], F_GETFL) & O_ASYNC);
  write(ends[1], "a", 1);
  printf("without an owner: %d\n", seen);
  TRY(fcntl(ends[0], F_SETOWN, getpid()));
  TRY(fcntl(ends[0], F_GETOWN) == getpid());
  TRY(ioctl(ends[0], FIOGETOWN, &owner));
  printf("the same %d\n", owner == getpid());
  write(ends[1], "a", 1);
  printf("signal %d\n", seen);
  seen = 0;
  TRY(fcntl(ends[0], F_SETSIG, SIGUSR1));
  TRY(fcntl(ends[0], F_GETSIG));
  write(ends[1], "a", 1);
  printf("signal %d code %d descriptor %d band %#x\n", seen, last_code, last_fd == ends[0], last_band);
  seen = 0;
  TRY(fcntl(ends[0], F_SETFL, 0));
  write(ends[1], "a", 1);
  printf("switched off: %d\n", seen);
  TRY(fcntl(ends[0], F_SETOWN, -getpgrp()));
  struct f_owner_ex typed = {F_OWNER_TID, getpid()};
  TRY(fcntl(ends[0], F_SETOWN_EX, &typed));
  TRY(fcntl(ends[0], F_GETOWN_EX, &typed));
  printf("type %d, own %d\n", typed.type, typed.pid == getpid());
  TRY(fcntl(ends[0], F_SETOWN, 999999));
  TRY(fcntl(ends[0], F_SETSIG, 99));
  TRY(ioctl(ends[0], FIOASYNC, &off));
  int pipes[2];
  pipe(pipes);
  fcntl(pipes[0], F_SETOWN, getpid());
  fcntl(pipes[0], F_SETFL, O_ASYNC | O_NONBLOCK);
  write(pipes[1], "b", 1);
  printf("a pipe signals %d\n", seen);
  int file = open("/dev/null", O_RDWR);
  TRY(ioctl(file, FIOASYNC, &on));
  TRY(fcntl(file, F_SETFL, O_ASYNC));
  TRY(fcntl(file, F_GETFL) & O_ASYNC);
  close(file);
}

static void pidfds(void) {
  int ends[2];
  pipe(ends);
  pid_t child = fork();
  if (!child) {
    usleep(10000);
    write(ends[1], "hey", 3);
    _exit(0);
  }
  close(ends[1]);
  int pidfd = syscall(SYS_pidfd_open, child, O_NONBLOCK), poller = epoll_create1(0), told = 0;
  struct epoll_event wanted = {EPOLLIN | EPOLLET | EPOLLRDHUP, {.u64 = 1}}, event;
  epoll_ctl(poller, EPOLL_CTL_ADD, pidfd, &wanted);
  wanted.data.u64 = 2;
  epoll_ctl(poller, EPOLL_CTL_ADD, ends[0], &wanted);
  while (told != 3 && epoll_wait(poller, &event, 1, -1) == 1)
    told |= event.data.u64;
  printf("told %d\n", told);
  waitpid(child, NULL, 0);
}

static void capabilities(void) {
  struct { unsigned version; int pid; } header = {0x20080522, 0}, other = {7, 0};
  struct { unsigned effective, permitted, inheritable; } data[2];
  TRY(syscall(SYS_capget, &header, data));
  printf("root may set its user: %d\n", data[0].effective >> 7 & 1);
  TRY(syscall(SYS_capget, &other, data));
  printf("version %#x\n", other.version);
  if (fork() == 0) {
    data[0].effective = data[0].permitted = 1 << 7;
    data[1].effective = data[1].permitted = 0;
    TRY(syscall(SYS_capset, &header, data));
    TRY(setgid(5));
    TRY(setuid(65534));
    TRY(syscall(SYS_capget, &header, data));
    printf("left %x %x\n", data[0].effective, data[0].permitted);
    data[0].permitted = 1;
    TRY(syscall(SYS_capset, &header, data));
    TRY(setuid(0));
    _exit(0);
  }
  wait(NULL);
  if (fork() == 0) {
    TRY(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
    TRY(setuid(65534));
    TRY(syscall(SYS_capget, &header, data));
    printf("kept %d %d\n", data[0].effective, data[0].permitted >> 7 & 1);
    _exit(0);
  }
  wait(NULL);
  TRY(prctl(PR_CAPBSET_READ, 7, 0, 0, 0));
  TRY(prctl(PR_CAPBSET_READ, 63, 0, 0, 0));
  TRY(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, 7, 0, 0));
  TRY(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
  TRY(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
  TRY(prctl(PR_GET_TIMING, 0, 0, 0, 0));
  TRY(prctl(PR_SET_TIMERSLACK, 70000, 0, 0, 0));
  TRY(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0));
}

static void bits(void) {
  unsigned value = 0;
  unsigned char carry;
  __asm__ volatile("lock btsl %2, %0\n" : "+m"(value), "=@ccc"(carry) : "Ir"(3) : "cc");
  printf("%u %d", value, carry);
  __asm__ volatile("lock btcl %2, %0\n" : "+m"(value), "=@ccc"(carry) : "Ir"(3) : "cc");
  printf(" %u %d", value, carry);
  __asm__ volatile("lock btrl %2, %0\n" : "+m"(value), "=@ccc"(carry) : "Ir"(3) : "cc");
  printf(" %u %d\n", value, carry);
}

int main(void) {
  owners();
  pidfds();
  capabilities();
  bits();
  return 0;
}

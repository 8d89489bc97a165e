// Fields that a call ignores, or only hands back, need not be initialised.
// run: --check-uninitialised
// exec:
// paths: 1
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <net/if.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

union number {
  int val;
  void *other;
};

static int events(void) {
  int ends[2];
  if (pipe(ends)) return 1;
  int set = epoll_create1(0);
  struct epoll_event event;
  event.events = EPOLLIN;
  event.data.fd = ends[0];
  struct pollfd waited[1];
  waited[0].fd = ends[1];
  waited[0].events = POLLOUT;
  return epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) || poll(waited, 1, 0) != 1;
}

static int addresses(void) {
  struct sockaddr_un name;
  name.sun_family = AF_UNIX;
  strcpy(name.sun_path, "socket");
  struct sockaddr_in6 six;
  six.sin6_family = AF_INET6;
  six.sin6_port = 0;
  six.sin6_addr = in6addr_loopback;
  six.sin6_scope_id = 0;
  struct linger linger;
  linger.l_onoff = 0;
  struct ifreq request;
  strcpy(request.ifr_name, "lo");
  int fd = socket(AF_UNIX, SOCK_DGRAM, 0), other = socket(AF_INET6, SOCK_DGRAM, 0);
  return bind(fd, (struct sockaddr *)&name, sizeof name) || bind(other, (struct sockaddr *)&six, sizeof six) ||
         setsockopt(other, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) || ioctl(other, SIOCGIFFLAGS, &request);
}

static int messages(void) {
  int ends[2];
  char byte = 'x';
  struct iovec piece = {&byte, 1};
  struct msghdr message;
  message.msg_name = 0;
  message.msg_namelen = 0;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = 0;
  message.msg_controllen = 0;
  return socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || sendmsg(ends[0], &message, 0) != 1;
}

static int numbers(void) {
  union sigval value;
  value.sival_int = 4;
  struct sigevent event;
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGUSR1;
  event.sigev_value.sival_int = 7;
  timer_t timer;
  union number set;
  set.val = 1;
  int semaphore = semget(IPC_PRIVATE, 1, 0600);
  signal(SIGUSR1, SIG_IGN);
  return sigqueue(getpid(), SIGUSR1, value) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
         semctl(semaphore, 0, SETVAL, set) || semctl(semaphore, 0, IPC_RMID);
}

static int files(void) {
  struct flock lock;
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0;
  lock.l_len = 0;
  struct timespec times[2];
  times[0].tv_nsec = UTIME_NOW;
  times[1].tv_nsec = UTIME_OMIT;
  int fd = open("file", O_CREAT | O_RDWR, 0600);
  return fcntl(fd, F_SETLK, &lock) || futimens(fd, times);
}

int main(void) { return events() || addresses() || messages() || numbers() || files(); }

// exec:
// Urgent data of UNIX streams: one byte at a time is marked, in line or beside the stream.
#define _GNU_SOURCE
#include "sockets.h"
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

static volatile sig_atomic_t urgent;
static int pair[2];

static void count(int signal) {
  (void)signal;
  urgent++;
}

static void fresh(const char *what) {
  printf("-- %s\n", what);
  close(pair[0]), close(pair[1]);
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
}

static int queued(void) {
  int bytes = -1;
  ioctl(pair[1], FIONREAD, &bytes);
  return bytes;
}

static void show(const char *what) {
  int mark = -1;
  ioctl(pair[1], SIOCATMARK, &mark);
  struct pollfd poller = {pair[1], POLLIN | POLLPRI | POLLRDBAND, 0};
  poll(&poller, 1, 0);
  printf("%s: mark %d, events %x\n", what, mark, poller.revents);
}

static void get(const char *what, size_t most, int flags) {
  char text[64] = "";
  struct iovec part = {text, most};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  errno = 0;
  long got = recvmsg(pair[1], &message, flags);
  printf("%s: %ld %s '%.*s' %x\n", what, got, got < 0 ? error_name(errno) : "", got > 0 ? (int)got : 0, text,
         got < 0 ? 0 : message.msg_flags);
}

static void put(const char *text, int flags) {
  errno = 0;
  long sent = send(pair[0], text, strlen(text), flags);
  printf("send '%s'%s: %ld %s\n", text, flags & MSG_OOB ? " urgent" : "", sent, sent < 0 ? error_name(errno) : "");
}

static void beside(void) {
  fresh("beside");
  get("nothing", 9, MSG_OOB);
  put("abc", MSG_OOB);
  show("sent");
  printf("queued %d\n", queued());
  get("peek urgent", 9, MSG_OOB | MSG_PEEK);
  get("urgent", 9, MSG_OOB);
  printf("queued %d\n", queued());
  get("urgent again", 9, MSG_OOB);
  show("read");
  get("peek", 9, MSG_PEEK);
  get("before", 9, 0);
  show("at mark");
  get("none", 9, MSG_DONTWAIT);
  show("after");
}

static void past(void) {
  fresh("past");
  put("ab", 0);
  put("c", MSG_OOB);
  put("de", 0);
  get("peek", 9, MSG_PEEK);
  get("before", 9, 0);
  show("at mark");
  get("peek", 9, MSG_PEEK);
  get("past it", 9, 0);
  show("after");
  get("urgent", 9, MSG_OOB);
}

static void several(void) {
  fresh("several");
  put("ab", MSG_OOB);
  put("cd", MSG_OOB);
  show("sent");
  get("urgent", 9, MSG_OOB);
  get("before", 9, 0);
  show("at mark");
  put("ef", MSG_OOB);
  show("at old mark");
  get("rest", 9, 0);
  show("at mark");
  get("urgent", 9, MSG_OOB);
  put("gh", MSG_OOB);
  get("urgent", 9, MSG_OOB);
  put("i", 0);
  show("two marks");
  get("one", 9, 0);
  show("next");
  get("two", 9, 0);
  show("end");
}

static void in_line(void) {
  fresh("in line");
  int one = 1;
  setsockopt(pair[1], SOL_SOCKET, SO_OOBINLINE, &one, sizeof one);
  put("abc", MSG_OOB);
  put("d", 0);
  get("urgent", 9, MSG_OOB);
  get("before", 9, 0);
  show("at mark");
  get("peek", 9, MSG_PEEK);
  get("with it", 9, 0);
  show("after");
}

static void told(void) {
  fresh("told");
  signal(SIGURG, count);
  fcntl(pair[1], F_SETOWN, getpid());
  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLPRI | EPOLLET}, found;
  epoll_ctl(epoll, EPOLL_CTL_ADD, pair[1], &event);
  put("a", MSG_OOB);
  printf("signals %d\n", urgent);
  put("b", 0);
  printf("signals %d\n", urgent);
  int ready = epoll_wait(epoll, &found, 1, 0);
  printf("epoll %d %x\n", ready, found.events);
  fd_set except;
  FD_ZERO(&except);
  FD_SET(pair[1], &except);
  printf("select %d\n", select(pair[1] + 1, 0, 0, &except, &(struct timeval){0, 0}));
  get("one", 1, 0);
  show("read");
  put("", MSG_OOB);
  close(epoll);
}

static void waiting(void) {
  fresh("waiting");
  fflush(stdout);
  int seen[2];
  char byte;
  pipe(seen);
  pid_t pid = fork();
  if (pid == 0) {
    send(pair[0], "ab", 2, 0);
    usleep(20000);
    send(pair[0], "c", 1, MSG_OOB);
    read(seen[0], &byte, 1);
    send(pair[0], "d", 1, 0);
    _exit(0);
  }
  get("all", 9, MSG_WAITALL);
  show("at mark");
  write(seen[1], "s", 1);
  get("then", 1, 0);
  waitpid(pid, 0, 0);
  fflush(stdout);
  pid = fork();
  if (pid == 0) {
    send(pair[0], "e", 1, MSG_OOB);
    usleep(20000);
    send(pair[0], "f", 1, 0);
    _exit(0);
  }
  get("peek", 9, MSG_PEEK);
  show("peeked");
  waitpid(pid, 0, 0);
  get("read", 9, 0);
}

static void ends(void) {
  fresh("ends");
  put("a", MSG_OOB);
  get("urgent", 9, MSG_OOB);
  close(pair[1]);
  char byte;
  printf("read %ld\n", (long)read(pair[0], &byte, 1));
  fresh("ends unread");
  put("a", MSG_OOB);
  close(pair[1]);
  tell("read", read(pair[0], &byte, 1));
  put("b", MSG_OOB | MSG_NOSIGNAL);
  fresh("end after it");
  put("a", MSG_OOB);
  shutdown(pair[0], SHUT_WR);
  get("end", 9, 0);
  for (int kind = SOCK_DGRAM; kind; kind = kind == SOCK_DGRAM ? SOCK_SEQPACKET : 0) {
    int packets[2];
    socketpair(AF_UNIX, kind, 0, packets);
    tell("packets", send(packets[0], "a", 1, MSG_OOB));
    tell("packets", recv(packets[1], &byte, 1, MSG_OOB | MSG_DONTWAIT));
    int mark = -1;
    tell("mark", ioctl(packets[1], SIOCATMARK, &mark));
    printf("%d\n", mark);
    close(packets[0]), close(packets[1]);
  }
}

int main(void) {
  pair[0] = pair[1] = -1;
  beside();
  past();
  several();
  in_line();
  told();
  waiting();
  ends();
  return 0;
}

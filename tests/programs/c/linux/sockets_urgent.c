// exec:
// Urgent data of TCP: read apart from the stream or in line with it, the mark, events, and the signal about it.
#include "sockets.h"

#include <sys/select.h>

static volatile sig_atomic_t signals;
static void count(int number) { signals += number == SIGURG; }

static int mark(int fd) {
  int is_there = -1;
  ioctl(fd, SIOCATMARK, &is_there);
  return is_there;
}

static int queued(int fd) {
  int bytes = -1;
  ioctl(fd, FIONREAD, &bytes);
  return bytes;
}

static void settle(int fd) {
  struct pollfd entry = {fd, POLLPRI, 0};
  poll(&entry, 1, -1);
}

static void tell_state(const char *what, int fd) {
  printf("%s: mark %d, queued %d, ", what, mark(fd), queued(fd));
  tell_events("events", fd);
}

static void apart(void) {
  puts("-- apart");
  int pair[2];
  tcp_pair(pair);
  tell_bytes("none yet", pair[1], 9, MSG_OOB);
  tell("owner", fcntl(pair[1], F_SETOWN, getpid()));
  tell("sent", send(pair[0], "abc", 3, 0));
  tell("urgent", send(pair[0], "deX", 3, MSG_OOB));
  tell("more", send(pair[0], "fg", 2, 0));
  settle(pair[1]);
  usleep(10000);
  printf("signals %d\n", (int)signals);
  tell_state("arrived", pair[1]);
  tell_bytes("looked at", pair[1], 9, MSG_OOB | MSG_PEEK);
  tell_bytes("urgent", pair[1], 9, MSG_OOB);
  tell_bytes("urgent again", pair[1], 9, MSG_OOB);
  tell_state("read apart", pair[1]);
  tell_bytes("before the mark", pair[1], 9, 0);
  tell_state("at the mark", pair[1]);
  tell_bytes("peeked", pair[1], 9, MSG_PEEK);
  tell_bytes("behind it", pair[1], 9, 0);
  tell_state("all read", pair[1]);
  close(pair[0]);
  close(pair[1]);
}

static void unread(void) {
  puts("-- unread");
  int pair[2];
  tcp_pair(pair);
  send(pair[0], "Y", 1, MSG_OOB);
  settle(pair[1]);
  tell_state("only urgent", pair[1]);
  fd_set exceptions;
  FD_ZERO(&exceptions);
  FD_SET(pair[1], &exceptions);
  struct timeval now = {0};
  tell("select", select(pair[1] + 1, NULL, NULL, &exceptions, &now));
  tell_bytes("nothing else", pair[1], 9, MSG_DONTWAIT);
  tell_bytes("gone with it", pair[1], 9, MSG_OOB);
  send(pair[0], "hiZ", 3, MSG_OOB);
  settle(pair[1]);
  char text[9];
  struct iovec part = {text, sizeof text};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  tell("message", recvmsg(pair[1], &message, MSG_OOB));
  printf("flags %#x\n", message.msg_flags);
  tell("wait for all", recv(pair[1], text, 9, MSG_WAITALL));
  tell("empty", send(pair[0], "", 0, MSG_OOB));
  close(pair[0]);
  close(pair[1]);
}

static void in_line(void) {
  puts("-- in line");
  int pair[2];
  tcp_pair(pair);
  tell("option", set_option(pair[1], SOL_SOCKET, SO_OOBINLINE, 1));
  send(pair[0], "abX", 3, MSG_OOB);
  send(pair[0], "cd", 2, 0);
  settle(pair[1]);
  usleep(10000);
  tell_state("arrived", pair[1]);
  tell_bytes("not apart", pair[1], 9, MSG_OOB);
  tell_bytes("before the mark", pair[1], 9, 0);
  tell_state("at the mark", pair[1]);
  tell_bytes("with it", pair[1], 9, 0);
  tell_state("all read", pair[1]);
  close(pair[0]);
  close(pair[1]);
}

static void twice(void) {
  puts("-- twice");
  int pair[2];
  tcp_pair(pair);
  send(pair[0], "aX", 2, MSG_OOB);
  settle(pair[1]);
  send(pair[0], "bY", 2, MSG_OOB);
  usleep(10000);
  tell_bytes("the last one", pair[1], 9, MSG_OOB);
  tell_bytes("the first one is one of the others", pair[1], 9, 0);
  close(pair[0]);
  tell_bytes("end", pair[1], 9, 0);
  close(pair[1]);
  int udp = socket(AF_INET, SOCK_DGRAM, 0);
  tell_bytes("datagrams have none", udp, 9, MSG_OOB | MSG_DONTWAIT);
}

int main(void) {
  signal(SIGURG, count);
  apart();
  unread();
  in_line();
  twice();
}

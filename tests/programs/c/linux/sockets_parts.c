// exec:
// Datagrams in parts (MSG_MORE, UDP_CORK), peeking at an offset, and what options tell about queues and packets.
#include "sockets.h"
#include <netinet/udp.h>

#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF 42
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif
#define INQ 36

static int told(int fd, int level, int name) {
  int value = -7;
  socklen_t size = sizeof value;
  return getsockopt(fd, level, name, &value, &size) < 0 ? -errno : value;
}

static int set(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value);
}

static void show(int fd, int flags) {
  char text[64];
  long count = recv(fd, text, sizeof text, flags | MSG_DONTWAIT);
  if (count < 0) printf("nothing: %s\n", error_name(errno));
  else printf("\"%.*s\"\n", (int)count, text);
  fflush(stdout);
}

static void parts(void) {
  int to = socket(AF_INET, SOCK_DGRAM, 0), from = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(4721)}, other = address;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  other.sin_addr.s_addr = htonl(INADDR_LOOPBACK), other.sin_port = htons(4799);
  bind(to, (void *)&address, sizeof address);
  tell("first", sendto(from, "one ", 4, MSG_MORE, (void *)&address, sizeof address));
  show(to, 0);
  tell("second", sendto(from, "two ", 4, MSG_MORE, (void *)&other, sizeof other));
  show(to, 0);
  tell("last", sendto(from, "three", 5, 0, NULL, 0));
  show(to, 0);
  tell_ok("connect", connect(from, (void *)&address, sizeof address));
  tell_ok("cork", set(from, SOL_UDP, UDP_CORK, 1));
  tell("write", write(from, "a", 1));
  tell("write", write(from, "b", 1));
  show(to, 0);
  tell_ok("uncork", set(from, SOL_UDP, UDP_CORK, 0));
  show(to, 0);
  static char much[60000];
  tell("much", send(from, much, sizeof much, MSG_MORE));
  tell("too much", send(from, much, sizeof much, 0));
  show(to, 0);
  tell("again", send(from, "again", 5, 0));
  show(to, 0);
  close(to), close(from);
}

static void peeks(int pair[2], const char *what, int by_message) {
  printf("%s\n", what);
  printf("offset %d\n", told(pair[0], SOL_SOCKET, SO_PEEK_OFF));
  tell_ok("offset", set(pair[0], SOL_SOCKET, SO_PEEK_OFF, 0));
  write(pair[1], "hello", 5);
  write(pair[1], "world", 5);
  char text[4];
  printf("%ld ", (long)recv(pair[0], text, 3, MSG_PEEK));
  printf("offset %d\n", told(pair[0], SOL_SOCKET, SO_PEEK_OFF));
  show(pair[0], MSG_PEEK);
  printf("offset %d\n", told(pair[0], SOL_SOCKET, SO_PEEK_OFF));
  if (by_message) show(pair[0], MSG_PEEK);
  show(pair[0], MSG_PEEK);
  read(pair[0], text, 2);
  printf("offset %d\n", told(pair[0], SOL_SOCKET, SO_PEEK_OFF));
  tell_ok("offset", set(pair[0], SOL_SOCKET, SO_PEEK_OFF, 1));
  show(pair[0], MSG_PEEK);
  tell_ok("no offset", set(pair[0], SOL_SOCKET, SO_PEEK_OFF, -1));
  show(pair[0], MSG_PEEK);
  close(pair[0]), close(pair[1]);
}

static void options(void) {
  int udp = socket(AF_INET, SOCK_DGRAM, 0), listener = socket(AF_INET, SOCK_STREAM, 0);
  int tcp = socket(AF_INET, SOCK_STREAM, 0), accepted;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(4722)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  unsigned memory[9];
  socklen_t size = sizeof memory;
  set(udp, SOL_SOCKET, SO_RCVBUF, 10000), set(udp, SOL_SOCKET, SO_SNDBUF, 20000);
  tell_ok("memory", getsockopt(udp, SOL_SOCKET, SO_MEMINFO, memory, &size));
  printf("%d: %u %u %u %u\n", (int)size, memory[0], memory[1], memory[2], memory[3]);
  char bytes[40];
  size = sizeof bytes;
  tell_ok("options", getsockopt(udp, SOL_IP, IP_OPTIONS, bytes, &size));
  printf("%d bytes\n", (int)size);
  printf("mtu %s\n", error_name(-told(udp, SOL_IP, IP_MTU)));
  bind(listener, (void *)&address, sizeof address);
  listen(listener, 1);
  connect(tcp, (void *)&address, sizeof address);
  connect(udp, (void *)&address, sizeof address);
  accepted = accept(listener, NULL, NULL);
  printf("mtu %d %d\n", told(udp, SOL_IP, IP_MTU), told(tcp, SOL_IP, IP_MTU));
  tell_ok("lock", set(udp, SOL_SOCKET, SO_LOCK_FILTER, 1));
  printf("locked %d\n", told(udp, SOL_SOCKET, SO_LOCK_FILTER));
  tell_ok("unlock", set(udp, SOL_SOCKET, SO_LOCK_FILTER, 0));
  tell_ok("left", set(accepted, SOL_TCP, INQ, 1));
  tell_ok("wrong", set(accepted, SOL_TCP, INQ, 2));
  write(tcp, "0123456789", 10);
  for (int i = 0; i < 3; i++) {
    char text[4], control[64];
    struct iovec part = {text, sizeof text};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control};
    message.msg_controllen = sizeof control;
    long count = recvmsg(accepted, &message, 0);
    struct cmsghdr *one = CMSG_FIRSTHDR(&message);
    printf("%ld read, left %d\n", count, one && one->cmsg_type == INQ ? *(int *)CMSG_DATA(one) : -1);
  }
}

int main(void) {
  own_network();
  parts();
  int pair[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  peeks(pair, "stream", 0);
  socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
  peeks(pair, "datagrams", 1);
  options();
  return 0;
}

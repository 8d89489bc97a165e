// exec:
// Connecting: without waiting, refused, full backlogs, to nowhere, addresses of all kinds.
#include "sockets.h"

static void without_waiting(void) {
  puts("-- without waiting");
  struct sockaddr_in address;
  int server = listener(&address, 4);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  tell("connect", connect(fd, (struct sockaddr *)&address, sizeof address));
  struct pollfd entry = {fd, POLLOUT, 0};
  tell("poll", poll(&entry, 1, -1));
  tell_events("events", fd);
  printf("error %s\n", error_name(socket_error(fd)));
  tell("connect again", connect(fd, (struct sockaddr *)&address, sizeof address));
  tell("and again", connect(fd, (struct sockaddr *)&address, sizeof address));
  int other = accept(server, NULL, NULL);
  tell("send", send(fd, "x", 1, 0));
  tell_bytes("recv", other, 10, 0);
  close(fd), close(other), close(server);
}

static void refused(void) {
  puts("-- refused");
  struct sockaddr_in address;
  int server = listener(&address, 4);
  close(server);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  tell("connect", connect(fd, (struct sockaddr *)&address, sizeof address));
  tell_events("events", fd);
  tell("connect again", connect(fd, (struct sockaddr *)&address, sizeof address));
  close(fd);
  fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  tell("without waiting", connect(fd, (struct sockaddr *)&address, sizeof address));
  tell_events("events", fd);
  printf("error %s\n", error_name(socket_error(fd)));
  printf("error %s\n", error_name(socket_error(fd)));
  tell_events("events", fd);
  tell("again", connect(fd, (struct sockaddr *)&address, sizeof address));
  tell("and again", connect(fd, (struct sockaddr *)&address, sizeof address));
  tell("recv", recv(fd, &address, 1, 0));
  tell("and again", connect(fd, (struct sockaddr *)&address, sizeof address));
  close(fd);
}

static void bad_addresses(void) {
  puts("-- bad addresses");
  struct sockaddr_in address = loopback(9);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  tell("short", connect(fd, (struct sockaddr *)&address, 8));
  tell("tiny", connect(fd, (struct sockaddr *)&address, 1));
  tell("long", connect(fd, (struct sockaddr *)&address, 500));
  address.sin_family = AF_INET6;
  tell("wrong family", connect(fd, (struct sockaddr *)&address, sizeof address));
  tell("short and wrong family", connect(fd, (struct sockaddr *)&address, 8));
  tell("no address", connect(fd, NULL, sizeof address));
  tell("no socket", connect(1000, (struct sockaddr *)&address, sizeof address));
  address = loopback(9);
  tell("short bind", bind(fd, (struct sockaddr *)&address, 8));
  address.sin_addr.s_addr = htonl(0x08080808);
  tell("foreign bind", bind(fd, (struct sockaddr *)&address, sizeof address));
  close(fd);
  tell("family", socket(999, SOCK_STREAM, 0));
  tell("type", socket(AF_INET, 77, 0));
  tell("type for family", socket(AF_INET, SOCK_SEQPACKET, 0));
  tell("protocol", socket(AF_INET, SOCK_STREAM, IPPROTO_UDP));
  tell("protocol", socket(AF_INET, SOCK_DGRAM, IPPROTO_TCP));
  tell("flags", socket(AF_INET, SOCK_STREAM | 0x100, 0));
  int pair[2];
  tell("pair", socketpair(AF_INET, SOCK_STREAM, 0, pair));
}

static void full_backlog(void) {
  puts("-- full backlog");
  struct sockaddr_in address;
  int server = listener(&address, 1), fds[4];
  for (int i = 0; i < 4; i++) {
    fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    connect(fds[i], (struct sockaddr *)&address, sizeof address);
    printf("%d: connected %d\n", i, (events_of(fds[i], POLLOUT) & POLLOUT) != 0);
  }
  tell("waiting sends", send(fds[3], "x", 1, 0));
  tell("waiting receives", recv(fds[3], &address, 1, 0));
  tell("waiting connects", connect(fds[3], (struct sockaddr *)&address, sizeof address));
  for (int i = 0; i < 2; i++) tell_ok("accept", accept(server, NULL, NULL));
  struct pollfd entry = {fds[2], POLLOUT, 0};
  tell("poll", poll(&entry, 1, -1));
  printf("error %s\n", error_name(socket_error(fds[2])));
  close(server);
}

static void elsewhere(void) {
  puts("-- any address is this host");
  struct sockaddr_in address;
  int server = listener(&address, 4);
  struct sockaddr_in any = address;
  any.sin_addr.s_addr = INADDR_ANY;
  int fd = connect_to(&any);
  tell_ok("to any", fd);
  struct sockaddr_in name;
  socklen_t len = sizeof name;
  getpeername(fd, (struct sockaddr *)&name, &len);
  printf("peer %s\n", inet_ntoa(name.sin_addr));
  len = sizeof name;
  getsockname(fd, (struct sockaddr *)&name, &len);
  printf("own %s\n", inet_ntoa(name.sin_addr));
  any.sin_addr.s_addr = htonl(0x7f000005);
  tell("to another of the loopback", connect_to(&any));
  close(server);
  server = socket(AF_INET, SOCK_STREAM, 0);
  any.sin_addr.s_addr = INADDR_ANY;
  any.sin_port = 0;
  bind(server, (struct sockaddr *)&any, sizeof any);
  listen(server, 4);
  len = sizeof any;
  getsockname(server, (struct sockaddr *)&any, &len);
  printf("any is %s\n", inet_ntoa(any.sin_addr));
  any.sin_addr.s_addr = htonl(0x7f000005);
  fd = connect_to(&any);
  tell_ok("to another of the loopback", fd);
  int other = accept(server, (struct sockaddr *)&name, &len);
  printf("from %s\n", inet_ntoa(name.sin_addr));
  len = 4;
  memset(&name, 0, sizeof name);
  tell("short name", getsockname(other, (struct sockaddr *)&name, &len));
  printf("length %u, port %s, address %x\n", len, name.sin_port ? "set" : "not set", name.sin_addr.s_addr);
  len = -1;
  tell("negative length", getsockname(other, (struct sockaddr *)&name, &len));
}

int main(void) {
  own_network();
  without_waiting();
  refused();
  bad_addresses();
  full_backlog();
  elsewhere();
  return 0;
}

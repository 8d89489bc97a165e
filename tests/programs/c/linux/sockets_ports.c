// exec:
// Ports: taken ones, sharing, waiting after a close, IPv6 and both at once.
#include "sockets.h"

static int bound(int family, const void *ip, int port, int reuse, int share, int only_v6) {
  int fd = socket(family, SOCK_STREAM, 0);
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, reuse);
  set_option(fd, SOL_SOCKET, SO_REUSEPORT, share);
  int result;
  if (family == AF_INET) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&address.sin_addr, ip, 4);
    result = bind(fd, (struct sockaddr *)&address, sizeof address);
  } else {
    set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, only_v6);
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    memcpy(&address.sin6_addr, ip, 16);
    result = bind(fd, (struct sockaddr *)&address, sizeof address);
  }
  if (result < 0) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

static int port_of(int fd) {
  struct sockaddr_storage name;
  socklen_t len = sizeof name;
  getsockname(fd, (struct sockaddr *)&name, &len);
  return ntohs(((struct sockaddr_in *)&name)->sin_port);
}

static const unsigned char any[4], local[4] = {127, 0, 0, 1}, local2[4] = {127, 0, 0, 2};

static void conflicts(void) {
  puts("-- conflicts");
  int fd = bound(AF_INET, local, 0, 0, 0, 0), port = port_of(fd);
  tell("same", bound(AF_INET, local, port, 0, 0, 0));
  tell("same with reuse", bound(AF_INET, local, port, 1, 0, 0));
  int other = bound(AF_INET, local2, port, 0, 0, 0);
  tell_ok("another address", other);
  tell("all addresses", bound(AF_INET, any, port, 0, 0, 0));
  close(other);
  struct sockaddr_in address = loopback(port);
  tell("bound again", bind(fd, (struct sockaddr *)&address, sizeof address));
  close(fd);
  fd = bound(AF_INET, local, port, 0, 0, 0);
  tell_ok("after close", fd);
  close(fd);
}

static void reuse(void) {
  puts("-- reuse");
  int fd = bound(AF_INET, local, 0, 1, 0, 0), port = port_of(fd);
  int other = bound(AF_INET, local, port, 1, 0, 0);
  tell_ok("both reuse", other);
  tell("one listens", listen(fd, 1));
  tell("the other listens", listen(other, 1));
  tell("bind while it listens", bound(AF_INET, local, port, 1, 0, 0));
  tell("all while it listens", bound(AF_INET, any, port, 1, 0, 0));
  close(fd), close(other);
  fd = bound(AF_INET, local, 0, 0, 1, 0), port = port_of(fd);
  other = bound(AF_INET, local, port, 0, 1, 0);
  tell_ok("both share", other);
  tell("one listens", listen(fd, 1));
  tell("the other listens", listen(other, 1));
  tell("a third does not share", bound(AF_INET, local, port, 0, 0, 0));
  close(fd), close(other);
}

static void after_close(int reuse_first, int reuse_second, int server_closes) {
  int server = bound(AF_INET, local, 0, reuse_first, 0, 0), port = port_of(server);
  listen(server, 4);
  struct sockaddr_in address = loopback(port);
  int client = connect_to(&address), fd = accept(server, NULL, NULL);
  int again = bound(AF_INET, local, port, reuse_second, 0, 0);
  printf("reuse %d %d, closed by %s: listening %s", reuse_first, reuse_second, server_closes ? "server" : "client",
         again < 0 ? error_name(errno) : "ok");
  close(again);
  close(server);
  again = bound(AF_INET, local, port, reuse_second, 0, 0);
  printf(", connected %s", again < 0 ? error_name(errno) : "ok");
  close(again);
  close(server_closes ? fd : client);
  again = bound(AF_INET, local, port, reuse_second, 0, 0);
  printf(", half %s", again < 0 ? error_name(errno) : "ok");
  close(again);
  close(server_closes ? client : fd);
  again = bound(AF_INET, local, port, reuse_second, 0, 0);
  printf(", closed %s\n", again < 0 ? error_name(errno) : "ok");
  close(again);
}

static void v6(void) {
  puts("-- both families");
  int fd = bound(AF_INET6, &in6addr_any, 0, 0, 0, 0), port = port_of(fd);
  tell("v4 beside both", bound(AF_INET, any, port, 0, 0, 0));
  tell("v4 beside both", bound(AF_INET, local, port, 0, 0, 0));
  tell("option after bind", set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1));
  listen(fd, 4);
  struct sockaddr_in address = loopback(port);
  int client = connect_to(&address);
  tell_ok("v4 client", client);
  struct sockaddr_in6 name;
  socklen_t len = sizeof name;
  char text[64];
  int accepted = accept(fd, (struct sockaddr *)&name, &len);
  printf("from %s, length %u\n", inet_ntop(AF_INET6, &name.sin6_addr, text, sizeof text), len);
  len = sizeof name;
  getsockname(accepted, (struct sockaddr *)&name, &len);
  printf("own %s\n", inet_ntop(AF_INET6, &name.sin6_addr, text, sizeof text));
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_loopback};
  int client6 = socket(AF_INET6, SOCK_STREAM, 0);
  tell("v6 client", connect(client6, (struct sockaddr *)&six, sizeof six));
  len = sizeof name;
  int accepted6 = accept(fd, (struct sockaddr *)&name, &len);
  printf("from %s\n", inet_ntop(AF_INET6, &name.sin6_addr, text, sizeof text));
  send(client6, "six", 3, 0);
  tell_bytes("recv", accepted6, 10, 0);
  int mapped = socket(AF_INET6, SOCK_STREAM, 0);
  inet_pton(AF_INET6, "::ffff:127.0.0.1", &six.sin6_addr);
  tell("mapped", connect(mapped, (struct sockaddr *)&six, sizeof six));
  close(fd), close(mapped), close(client), close(client6), close(accepted), close(accepted6);
  fd = bound(AF_INET6, &in6addr_any, 0, 0, 0, 1), port = port_of(fd);
  int four = bound(AF_INET, any, port, 0, 0, 0);
  tell_ok("v4 beside v6", four);
  printf("v6 only %d\n", option(fd, IPPROTO_IPV6, IPV6_V6ONLY));
  listen(fd, 4);
  address = loopback(port);
  tell("v4 to v6 only", connect_to(&address));
  tell("v4 listens beside v6", listen(four, 4));
  int client4 = connect_to(&address);
  tell_ok("v4 client", client4);
  printf("v6 has a connection %d, v4 %d\n", events_of(fd, POLLIN), events_of(four, POLLIN));
  close(four), close(client4);
  tell("v4 option on v6", option(fd, IPPROTO_IP, IP_TTL));
  close(fd);
}

int main(void) {
  own_network();
  conflicts();
  reuse();
  puts("-- after a close");
  for (int i = 0; i < 8; i++) after_close(i & 1, i >> 1 & 1, i >> 2);
  v6();
  return 0;
}

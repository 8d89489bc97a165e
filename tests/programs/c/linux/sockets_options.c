// exec:
// Options: what they are at the start, what they become, which there are not.
#include "sockets.h"

static void told(void) {
  puts("-- what a socket is");
  static const struct { int domain, type; const char *name; } kinds[] = {
      {AF_INET, SOCK_STREAM, "tcp"},      {AF_INET, SOCK_DGRAM, "udp"},        {AF_INET6, SOCK_STREAM, "tcp6"},
      {AF_UNIX, SOCK_STREAM, "unix"},     {AF_UNIX, SOCK_DGRAM, "unix dgram"}, {AF_UNIX, SOCK_SEQPACKET, "unix packets"},
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    int fd = socket(kinds[i].domain, kinds[i].type, 0);
    printf("%s: domain %d type %d protocol %d accepts %d error %d\n", kinds[i].name, option(fd, SOL_SOCKET, SO_DOMAIN),
           option(fd, SOL_SOCKET, SO_TYPE), option(fd, SOL_SOCKET, SO_PROTOCOL), option(fd, SOL_SOCKET, SO_ACCEPTCONN),
           option(fd, SOL_SOCKET, SO_ERROR));
    printf("  set type %s", set_option(fd, SOL_SOCKET, SO_TYPE, 1) < 0 ? error_name(errno) : "ok");
    printf(", ip %s", option(fd, IPPROTO_IP, IP_TTL) < 0 ? error_name(-option(fd, IPPROTO_IP, IP_TTL)) : "ok");
    int six = option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
    printf(", ip6 %s", six < 0 ? error_name(-six) : "ok");
    int tcp = option(fd, IPPROTO_TCP, TCP_NODELAY);
    printf(", tcp %s", tcp < 0 ? error_name(-tcp) : "ok");
    printf(", unknown %s\n", error_name(-option(fd, SOL_SOCKET, 9999)));
    close(fd);
  }
  struct sockaddr_in address;
  int server = listener(&address, 1);
  printf("listening %d\n", option(server, SOL_SOCKET, SO_ACCEPTCONN));
  close(server);
}

static void flags(void) {
  puts("-- yes or no");
  static const struct { int level, name; const char *text; } list[] = {
      {SOL_SOCKET, SO_REUSEADDR, "reuse"},    {SOL_SOCKET, SO_REUSEPORT, "share"}, {SOL_SOCKET, SO_KEEPALIVE, "keepalive"},
      {SOL_SOCKET, SO_BROADCAST, "broadcast"}, {SOL_SOCKET, SO_OOBINLINE, "oob"},   {SOL_SOCKET, SO_DONTROUTE, "route"},
      {SOL_SOCKET, SO_TIMESTAMP, "time"},     {IPPROTO_TCP, TCP_NODELAY, "nodelay"}, {IPPROTO_TCP, TCP_CORK, "cork"},
      {IPPROTO_IP, IP_RECVERR, "errors"},
  };
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    printf("%s %d", list[i].text, option(fd, list[i].level, list[i].name));
    int result = set_option(fd, list[i].level, list[i].name, 5);
    printf(" %s %d", result < 0 ? error_name(errno) : "ok", option(fd, list[i].level, list[i].name));
    set_option(fd, list[i].level, list[i].name, 0);
    printf(" %d\n", option(fd, list[i].level, list[i].name));
  }
  close(fd);
}

static void numbers(void) {
  puts("-- numbers");
  static const struct { int level, name, values[3]; const char *text; } list[] = {
      {IPPROTO_TCP, TCP_KEEPIDLE, {30, 0, 40000}, "idle"}, {IPPROTO_TCP, TCP_KEEPINTVL, {10, -1, 32767}, "interval"},
      {IPPROTO_TCP, TCP_KEEPCNT, {3, 0, 128}, "count"},    {IPPROTO_TCP, TCP_USER_TIMEOUT, {100, -1, 0}, "user"},
      {IPPROTO_IP, IP_TTL, {10, 0, 256}, "ttl"},           {SOL_SOCKET, SO_PRIORITY, {3, 4, 6}, "priority"},
      {SOL_SOCKET, SO_RCVLOWAT, {7, 0, 1}, "low water"},   {IPPROTO_TCP, TCP_SYNCNT, {3, 0, 300}, "tries"},
  };
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    printf("%s %d:", list[i].text, option(fd, list[i].level, list[i].name));
    for (int k = 0; k < 3; k++) {
      int result = set_option(fd, list[i].level, list[i].name, list[i].values[k]);
      printf(" %s %d", result < 0 ? error_name(errno) : "ok", option(fd, list[i].level, list[i].name));
    }
    puts("");
  }
  close(fd);
}

static void buffers(void) {
  puts("-- buffers");
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  static const int sizes[] = {0, 1000, 5000, 100000};
  for (int i = 0; i < 4; i++) {
    set_option(fd, SOL_SOCKET, SO_RCVBUF, sizes[i]);
    set_option(fd, SOL_SOCKET, SO_SNDBUF, sizes[i]);
    printf("%d: %d %d\n", sizes[i], option(fd, SOL_SOCKET, SO_RCVBUF), option(fd, SOL_SOCKET, SO_SNDBUF));
  }
  close(fd);
}

static void structures(void) {
  puts("-- structures");
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct linger linger = {9, 9};
  socklen_t len = sizeof linger;
  getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len);
  printf("linger %d %d %u\n", linger.l_onoff, linger.l_linger, len);
  linger = (struct linger){1, 5};
  tell("set", setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
  linger = (struct linger){9, 9};
  getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len);
  printf("linger %d %d %u\n", linger.l_onoff, linger.l_linger, len);
  tell("short", setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, 4));
  tell("short int", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &linger, 2));
  short half = -1;
  len = 2;
  tell("short answer", getsockopt(fd, SOL_SOCKET, SO_TYPE, &half, &len));
  printf("%d %u\n", half, len);
  len = -1;
  tell("negative", getsockopt(fd, SOL_SOCKET, SO_TYPE, &half, &len));
  len = 4;
  tell("no memory", getsockopt(fd, SOL_SOCKET, SO_TYPE, NULL, &len));
  tell("no memory", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, NULL, 4));
  tell("no socket", setsockopt(0, SOL_SOCKET, SO_REUSEADDR, &half, 4));
  struct tcp_info info;
  struct sockaddr_in address;
  int server = listener(&address, 3), client = connect_to(&address);
  len = 1;
  getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
  printf("state %d, length %u\n", info.tcpi_state, len);
  len = sizeof info;
  getsockopt(server, IPPROTO_TCP, TCP_INFO, &info, &len);
  printf("state %d, waiting %u of %u\n", info.tcpi_state, info.tcpi_unacked, info.tcpi_sacked);
  getsockopt(client, IPPROTO_TCP, TCP_INFO, &info, &len);
  printf("state %d\n", info.tcpi_state);
  shutdown(client, SHUT_WR);
  int accepted = accept(server, NULL, NULL);
  getsockopt(accepted, IPPROTO_TCP, TCP_INFO, &info, &len);
  printf("state %d\n", info.tcpi_state);
  char name[16];
  len = sizeof name;
  tell("congestion", getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len));
  printf("length %u\n", len);
  close(fd), close(server), close(client), close(accepted);
}

static void inherited(void) {
  puts("-- inherited");
  struct sockaddr_in address;
  int server = listener(&address, 3);
  set_option(server, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(server, SOL_SOCKET, SO_KEEPALIVE, 1);
  nonblocking(server);
  int client = connect_to(&address), fd = accept(server, NULL, NULL);
  printf("nodelay %d keepalive %d flags %x\n", option(fd, IPPROTO_TCP, TCP_NODELAY), option(fd, SOL_SOCKET, SO_KEEPALIVE),
         fcntl(fd, F_GETFL));
  int second = connect_to(&address);
  int other = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  printf("flags %x %x\n", fcntl(other, F_GETFL), fcntl(other, F_GETFD));
  tell("bad flags", accept4(server, NULL, NULL, 1));
  close(fd), close(other), close(client), close(second), close(server);
}

static void low_water(void) {
  puts("-- low water");
  int pair[2];
  tcp_pair(pair);
  set_option(pair[0], SOL_SOCKET, SO_RCVLOWAT, 4);
  send(pair[1], "abc", 3, 0);
  printf("in %d\n", events_of(pair[0], POLLIN));
  send(pair[1], "d", 1, 0);
  printf("in %d\n", events_of(pair[0], POLLIN));
  tell_bytes("recv", pair[0], 100, 0);
  close(pair[0]), close(pair[1]);
}

int main(void) {
  told();
  flags();
  numbers();
  buffers();
  structures();
  inherited();
  low_water();
  return 0;
}

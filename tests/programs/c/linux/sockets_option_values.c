// exec:
// Which values options of sockets take, and what is left of them.
#include "files.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

static void set(int fd, const char *name, int level, int option, int value) {
  socklen_t size = sizeof value;
  errno = 0;
  if (setsockopt(fd, level, option, &value, size)) printf("%s %d: %s\n", name, value, strerror(errno));
  else if (getsockopt(fd, level, option, &value, &size)) printf("%s cannot be read\n", name);
  else printf("%s = %d\n", name, value);
}
#define SET(level, option, value) set(fd, #option, level, option, value)

int main(void) {
  int unused;
  socklen_t size = sizeof unused;
  for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
    int fd = socket(AF_INET, type, 0);
    printf("type %d\n", type);
    SET(IPPROTO_IP, IP_TOS, 0xb8);
    SET(IPPROTO_IP, IP_TOS, 3);
    SET(IPPROTO_IP, IP_TOS, 256);
    SET(IPPROTO_IP, IP_TOS, -1);
    SET(SOL_SOCKET, SO_PRIORITY, 3);
    SET(IPPROTO_IP, IP_MULTICAST_TTL, 0);
    SET(IPPROTO_IP, IP_MULTICAST_TTL, -1);
    SET(IPPROTO_IP, IP_MINTTL, 5);
    SET(IPPROTO_IP, IP_MINTTL, 300);
    TRY(getsockopt(fd, 77, 1, &unused, &size));
    fd = socket(AF_INET6, type, 0);
    SET(IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 9);
    SET(IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0);
    SET(IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 2);
    TRY(getsockopt(fd, 77, 1, &unused, &size) ? errno == ENOPROTOOPT : -1);
    fd = socket(AF_UNIX, type, 0);
    SET(SOL_SOCKET, SO_REUSEPORT, 0);
    SET(SOL_SOCKET, SO_REUSEPORT, 1);
  }
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  SET(IPPROTO_TCP, TCP_MAXSEG, 5);
  SET(IPPROTO_TCP, TCP_MAXSEG, 40000);
  struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("224.0.0.1")};
  TRY(bind(fd, (void *)&group, sizeof group));
  return 0;
}

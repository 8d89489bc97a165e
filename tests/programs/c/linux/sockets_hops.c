// exec:
// Hops and type of service of UDP datagrams: options, ancillary data of a message, and what the receiver sees.
#include "sockets.h"

static int receiver(int domain, int port, const int options[][2], int count) {
  int fd = socket(domain, SOCK_DGRAM, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  struct sockaddr_in6 address6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address6.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
  for (int i = 0; i < count; i++) setsockopt(fd, options[i][0], options[i][1], &on, sizeof on);
  tell_ok("bind", domain == AF_INET ? bind(fd, (void *)&address, sizeof address)
                                    : bind(fd, (void *)&address6, sizeof address6));
  return fd;
}

static void show(int fd) {
  char text[16], control[256];
  struct iovec part = {text, sizeof text};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  long count = recvmsg(fd, &message, MSG_DONTWAIT);
  printf("received %ld:", count);
  if (count >= 0)
    for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
      int value = 0;
      size_t size = one->cmsg_len - CMSG_LEN(0);
      memcpy(&value, CMSG_DATA(one), size < sizeof value ? size : sizeof value);
      printf(" level %d type %d size %d value %d", one->cmsg_level, one->cmsg_type, (int)size, value);
    }
  printf("\n");
  fflush(stdout);
}

// Sends with one entry of ancillary data.
static long with(int fd, struct sockaddr *to, socklen_t size, int level, int type, const void *data, size_t len) {
  union {
    char bytes[CMSG_SPACE(64)];
    struct cmsghdr header;
  } control;
  memset(&control, 0, sizeof control);
  control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(len), .cmsg_level = level, .cmsg_type = type};
  memcpy(CMSG_DATA(&control.header), data, len);
  struct iovec part = {"data", 4};
  struct msghdr message = {.msg_name = to, .msg_namelen = size, .msg_iov = &part, .msg_iovlen = 1};
  message.msg_control = &control, message.msg_controllen = CMSG_SPACE(len);
  return sendmsg(fd, &message, 0);
}

static void version4(void) {
  int options[][2] = {{SOL_IP, IP_RECVTTL}, {SOL_IP, IP_RECVTOS}};
  int to = receiver(AF_INET, 4713, options, 2), from = socket(AF_INET, SOCK_DGRAM, 0), value;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(4713)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  struct sockaddr *at = (void *)&address;
  sendto(from, "a", 1, 0, at, sizeof address), show(to);
  value = 7, setsockopt(from, SOL_IP, IP_TTL, &value, sizeof value);
  value = 0x2c, setsockopt(from, SOL_IP, IP_TOS, &value, sizeof value);
  sendto(from, "b", 1, 0, at, sizeof address), show(to);
  value = 200, tell("ttl", with(from, at, sizeof address, SOL_IP, IP_TTL, &value, sizeof value)), show(to);
  value = 0, tell("no ttl", with(from, at, sizeof address, SOL_IP, IP_TTL, &value, sizeof value));
  value = 256, tell("high ttl", with(from, at, sizeof address, SOL_IP, IP_TTL, &value, sizeof value));
  value = 0x10, tell("tos", with(from, at, sizeof address, SOL_IP, IP_TOS, &value, sizeof value)), show(to);
  value = 0x18, tell("short tos", with(from, at, sizeof address, SOL_IP, IP_TOS, &value, 1)), show(to);
  tell("unknown", with(from, at, sizeof address, SOL_IP, 99, &value, sizeof value));
  tell("other level", with(from, at, sizeof address, SOL_TCP, 99, &value, sizeof value)), show(to);
  struct in_pktinfo info = {.ipi_spec_dst.s_addr = htonl(0x7f000003)};
  tell("source", with(from, at, sizeof address, SOL_IP, IP_PKTINFO, &info, sizeof info));
  struct sockaddr_in sender;
  socklen_t size = sizeof sender;
  char text[16];
  tell("recvfrom", recvfrom(to, text, sizeof text, 0, (void *)&sender, &size));
  printf("from %s\n", inet_ntoa(sender.sin_addr));
  // The least number of hops only counts for connections.
  value = 100, tell_ok("IP_MINTTL", setsockopt(to, SOL_IP, IP_MINTTL, &value, sizeof value));
  sendto(from, "c", 1, 0, at, sizeof address), show(to);
  value = -1, setsockopt(from, SOL_IP, IP_TTL, &value, sizeof value);
  sendto(from, "d", 1, 0, at, sizeof address), show(to);
  close(to), close(from);
}

static void version6(void) {
  int options[][2] = {{SOL_IPV6, IPV6_RECVHOPLIMIT}, {SOL_IPV6, IPV6_RECVTCLASS}};
  int to = receiver(AF_INET6, 4712, options, 2), from = socket(AF_INET6, SOCK_DGRAM, 0), value;
  struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(4712)};
  address.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
  struct sockaddr *at = (void *)&address;
  sendto(from, "a", 1, 0, at, sizeof address), show(to);
  value = 9, setsockopt(from, SOL_IPV6, IPV6_UNICAST_HOPS, &value, sizeof value);
  value = 0x20, setsockopt(from, SOL_IPV6, IPV6_TCLASS, &value, sizeof value);
  sendto(from, "b", 1, 0, at, sizeof address), show(to);
  value = 33, tell("hops", with(from, at, sizeof address, SOL_IPV6, IPV6_HOPLIMIT, &value, sizeof value)), show(to);
  value = -1, tell("usual hops", with(from, at, sizeof address, SOL_IPV6, IPV6_HOPLIMIT, &value, sizeof value));
  show(to);
  value = 300, tell("high hops", with(from, at, sizeof address, SOL_IPV6, IPV6_HOPLIMIT, &value, sizeof value));
  value = 0x30, tell("class", with(from, at, sizeof address, SOL_IPV6, IPV6_TCLASS, &value, sizeof value)), show(to);
  close(to), close(from);
}

int main(void) {
  own_network();
  version4();
  version6();
  return 0;
}

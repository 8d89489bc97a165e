// exec:
// Raw sockets over the loopback: echoes that the kernel answers, other protocols, own headers, errors, filters.
#include "sockets.h"

#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>

static unsigned short checksum(const void *data, size_t len) {
  const unsigned char *bytes = data;
  unsigned sum = 0;
  for (size_t at = 0; at < len; at++) sum += at % 2 ? bytes[at] : bytes[at] << 8;
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return htons(~sum);
}

// Receives a packet and prints what does not differ from kernel to kernel.
static void tell_packet(const char *what, int fd) {
  unsigned char packet[2048];
  struct sockaddr_in from;
  socklen_t len = sizeof from;
  long got = recvfrom(fd, packet, sizeof packet, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
  if (got < 0) {
    printf("%s: %s\n", what, error_name(errno));
    return;
  }
  struct iphdr *ip = (struct iphdr *)packet;
  unsigned char *body = packet + ip->ihl * 4;
  printf("%s: %ld from %s:%d (%u), header %d, protocol %d, ttl %d, total %d, sum %d:", what, got,
         inet_ntoa(from.sin_addr), ntohs(from.sin_port), len, ip->ihl * 4, ip->protocol, ip->ttl, ntohs(ip->tot_len),
         checksum(ip, ip->ihl * 4));
  if (ip->protocol == IPPROTO_ICMP)
    printf(" type %d code %d sum %d", body[0], body[1], checksum(body, got - ip->ihl * 4));
  else if (ip->protocol != IPPROTO_UDP)
    for (long at = ip->ihl * 4; at < got; at++) printf(" %02x", packet[at]);
  puts("");
}

static void echo(int fd, int id, int sequence, int broken) {
  struct {
    struct icmphdr header;
    char text[9];
  } message = {.header = {.type = ICMP_ECHO}, .text = "whatever"};
  message.header.un.echo.id = htons(id);
  message.header.un.echo.sequence = htons(sequence);
  message.header.checksum = checksum(&message, sizeof message);
  message.header.checksum ^= broken;
  struct sockaddr_in to = loopback(0);
  tell("echo", sendto(fd, &message, sizeof message, 0, (struct sockaddr *)&to, sizeof to));
}

static void pings(void) {
  puts("-- pings");
  int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
  tell_events("new", fd);
  tell_packet("nothing", fd);
  echo(fd, 77, 1, 0);
  tell_events("answered", fd);
  tell_packet("request", fd);
  tell_packet("reply", fd);
  tell_packet("no more", fd);
  echo(fd, 77, 2, 0x100);
  tell_packet("broken request", fd);
  tell_packet("no reply", fd);
  unsigned filter = ~(1u << ICMP_ECHOREPLY);
  tell("filter", setsockopt(fd, 255, 1, &filter, sizeof filter));
  echo(fd, 77, 3, 0);
  tell_packet("reply only", fd);
  tell_packet("no more", fd);
  tell("hops", set_option(fd, IPPROTO_IP, IP_TTL, 9));
  filter = 0;
  setsockopt(fd, 255, 1, &filter, sizeof filter);
  echo(fd, 77, 4, 0);
  tell_packet("request with 9 hops", fd);
  tell_packet("reply", fd);
  struct sockaddr_in own;
  socklen_t len = sizeof own;
  getsockname(fd, (struct sockaddr *)&own, &len);
  printf("name %s:%d, type %d, protocol %d\n", inet_ntoa(own.sin_addr), ntohs(own.sin_port),
         option(fd, SOL_SOCKET, SO_TYPE), option(fd, SOL_SOCKET, SO_PROTOCOL));
  close(fd);
}

static void protocols(void) {
  puts("-- protocols");
  int fd = socket(AF_INET, SOCK_RAW, 89), other = socket(AF_INET, SOCK_RAW, 89);
  int icmp = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
  struct sockaddr_in to = loopback(5);
  tell("not connected", send(fd, "abc", 3, 0));
  tell("hello", sendto(fd, "abc", 3, 0, (struct sockaddr *)&to, sizeof to));
  tell_packet("own", fd);
  tell_packet("other", other);
  struct sockaddr_in wrong = {.sin_family = AF_INET};
  inet_pton(AF_INET, "127.0.0.2", &wrong.sin_addr);
  tell("bound elsewhere", bind(other, (struct sockaddr *)&wrong, sizeof wrong));
  tell("connected", connect(fd, (struct sockaddr *)&to, sizeof to));
  tell("hello", send(fd, "de", 2, 0));
  tell_packet("own", fd);
  tell_packet("not for it", other);
  close(other);
  close(fd);
  tell_packet("no errors so far", icmp);
  fd = socket(AF_INET, SOCK_RAW, 200);
  int sender = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
  connect(fd, (struct sockaddr *)&to, sizeof to);
  tell("header included", option(sender, IPPROTO_IP, IP_HDRINCL));
  unsigned char packet[24] = {0x45, 0x10, 0, 0, 0, 0, 0, 0, 33, 200, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1, 1, 2, 3, 4};
  packet[4] = 1;
  tell("own header", sendto(sender, packet, sizeof packet, 0, (struct sockaddr *)&to, sizeof to));
  tell_packet("with it", fd);
  tell_packet("nothing comes back", sender);
  tell("too short", sendto(sender, packet, 12, 0, (struct sockaddr *)&to, sizeof to));
  close(fd);
  tell("no such protocol", sendto(sender, packet, sizeof packet, 0, (struct sockaddr *)&to, sizeof to));
  tell_packet("protocol unreachable", icmp);
  close(sender);
  close(icmp);
}

static void datagrams(void) {
  puts("-- datagrams");
  int icmp = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), raw = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
  int udp = socket(AF_INET, SOCK_DGRAM, 0), server = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = loopback(0);
  socklen_t len = sizeof to;
  bind(server, (struct sockaddr *)&to, sizeof to);
  getsockname(server, (struct sockaddr *)&to, &len);
  tell("datagram", sendto(udp, "xyz", 3, 0, (struct sockaddr *)&to, sizeof to));
  tell_packet("seen", raw);
  tell_bytes("received", server, 9, MSG_DONTWAIT);
  struct {
    struct udphdr header;
    char text[4];
  } message = {.text = "raw!"};
  message.header.source = htons(4321);
  message.header.dest = to.sin_port;
  message.header.len = htons(sizeof message);
  tell("raw datagram", sendto(raw, &message, sizeof message, 0, (struct sockaddr *)&to, sizeof to));
  struct sockaddr_in from;
  char text[9];
  tell("received", recvfrom(server, text, sizeof text, MSG_DONTWAIT, (struct sockaddr *)&from, &len));
  printf("from %s:%d \"%.4s\"\n", inet_ntoa(from.sin_addr), ntohs(from.sin_port), text);
  tell_packet("seen", raw);
  message.header.check = htons(0x1234);
  tell("wrong checksum", sendto(raw, &message, sizeof message, 0, (struct sockaddr *)&to, sizeof to));
  tell_bytes("dropped", server, 9, MSG_DONTWAIT);
  close(server);
  tell("to nobody", sendto(udp, "uvw", 3, 0, (struct sockaddr *)&to, sizeof to));
  tell_packet("port unreachable", icmp);
  connect(udp, (struct sockaddr *)&to, sizeof to);
  tell("to nobody", send(udp, "uvw", 3, 0));
  tell_packet("port unreachable", icmp);
  printf("error %s\n", error_name(socket_error(udp)));
  close(icmp);
  close(raw);
  close(udp);
}

static void ancillary(void) {
  puts("-- ancillary");
  int fd = socket(AF_INET, SOCK_RAW, 90);
  tell("info", set_option(fd, IPPROTO_IP, IP_PKTINFO, 1));
  tell("ttl", set_option(fd, IPPROTO_IP, IP_RECVTTL, 1));
  struct sockaddr_in to = loopback(0);
  sendto(fd, "z", 1, 0, (struct sockaddr *)&to, sizeof to);
  char packet[64], control[256];
  struct iovec part = {packet, sizeof packet};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  tell("received", recvmsg(fd, &message, MSG_DONTWAIT));
  for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_type == IP_PKTINFO) {
      struct in_pktinfo *info = (struct in_pktinfo *)CMSG_DATA(one);
      printf("interface %d, ", info->ipi_ifindex);
      printf("to %s\n", inet_ntoa(info->ipi_addr));
    } else
      printf("level %d type %d: %d\n", one->cmsg_level, one->cmsg_type, *(int *)CMSG_DATA(one));
  }
  tell("device", setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
  sendto(fd, "z", 1, 0, (struct sockaddr *)&to, sizeof to);
  tell_packet("at the device", fd);
  tell("no device", setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "none0", 6));
  close(fd);
}

static void refusals(void) {
  puts("-- refusals");
  tell_ok("protocol 0", socket(AF_INET, SOCK_RAW, 0));
  tell_ok("protocol 256", socket(AF_INET, SOCK_RAW, 256));
  int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
  struct sockaddr_in to = loopback(0);
  tell("listen", listen(fd, 1));
  tell("shutdown", shutdown(fd, SHUT_RD));
  tell("peer", getpeername(fd, (struct sockaddr *)&to, &(socklen_t){sizeof to}));
  tell("not own", bind(fd, (struct sockaddr *)&(struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {0x08080808}},
                       sizeof to));
  tell("filter of others", setsockopt(socket(AF_INET, SOCK_RAW, 89), 255, 1, &(int){0}, 4));
  if (setuid(1000) == 0) {
    tell_ok("raw of a user", socket(AF_INET, SOCK_RAW, IPPROTO_ICMP));
    tell_ok("packets of a user", socket(AF_PACKET, SOCK_RAW, 0));
  }
}

int main(void) {
  own_network();
  pings();
  protocols();
  datagrams();
  ancillary();
  refusals();
}

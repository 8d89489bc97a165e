// exec:
// What a host tells of its interfaces, as far as every host has it: the loopback.
#include "sockets.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

static void requests(void) {
  puts("-- requests");
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strcpy(request.ifr_name, "lo");
  tell("address", ioctl(fd, SIOCGIFADDR, &request));
  printf("%s\n", inet_ntoa(((struct sockaddr_in *)&request.ifr_addr)->sin_addr));
  tell("mask", ioctl(fd, SIOCGIFNETMASK, &request));
  printf("%s\n", inet_ntoa(((struct sockaddr_in *)&request.ifr_netmask)->sin_addr));
  tell("flags", ioctl(fd, SIOCGIFFLAGS, &request));
  printf("up %d loopback %d\n", !!(request.ifr_flags & IFF_UP), !!(request.ifr_flags & IFF_LOOPBACK));
  tell("mtu", ioctl(fd, SIOCGIFMTU, &request));
  printf("%d\n", request.ifr_mtu);
  tell("index", ioctl(fd, SIOCGIFINDEX, &request));
  printf("%d\n", request.ifr_ifindex);
  tell("hardware", ioctl(fd, SIOCGIFHWADDR, &request));
  printf("%d\n", request.ifr_hwaddr.sa_family);
  strcpy(request.ifr_name, "none0");
  tell("no such", ioctl(fd, SIOCGIFADDR, &request));
  struct ifreq all[16];
  struct ifconf list = {.ifc_len = sizeof all, .ifc_req = all};
  tell("all", ioctl(fd, SIOCGIFCONF, &list));
  printf("first %s %s, whole %d\n", all[0].ifr_name, inet_ntoa(((struct sockaddr_in *)&all[0].ifr_addr)->sin_addr),
         list.ifc_len % (int)sizeof *all == 0 && list.ifc_len > 0);
  tell("unknown", ioctl(fd, 0x12345, &request));
  close(fd);
  printf("index of lo %u, of nothing %u\n", if_nametoindex("lo"), if_nametoindex("none0"));
  char name[IF_NAMESIZE];
  printf("name of 1 %s\n", if_indextoname(1, name));
  printf("name of 999 %s\n", if_indextoname(999, name) ? "some" : "none");
}

static void listed(void) {
  puts("-- listed");
  struct ifaddrs *all;
  tell("getifaddrs", getifaddrs(&all));
  char text[64];
  for (struct ifaddrs *one = all; one; one = one->ifa_next) {
    if (strcmp(one->ifa_name, "lo") || !one->ifa_addr) continue;
    if (one->ifa_addr->sa_family == AF_INET)
      printf("v4 %s\n", inet_ntop(AF_INET, &((struct sockaddr_in *)one->ifa_addr)->sin_addr, text, sizeof text));
    if (one->ifa_addr->sa_family == AF_INET6)
      printf("v6 %s\n", inet_ntop(AF_INET6, &((struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, text, sizeof text));
    if (one->ifa_addr->sa_family == AF_PACKET) printf("link, up %d\n", !!(one->ifa_flags & IFF_UP));
  }
  freeifaddrs(all);
}

static void refused(void) {
  puts("-- netlink");
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  struct { struct nlmsghdr header; struct rtgenmsg body; } request;
  memset(&request, 0, sizeof request);
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_GETLINK;
  request.header.nlmsg_flags = NLM_F_DUMP | NLM_F_REQUEST;
  request.header.nlmsg_seq = 42;
  request.body.rtgen_family = AF_UNSPEC;
  tell("send", send(fd, &request, sizeof request, 0));
  char buffer[16384];
  long len = recv(fd, buffer, sizeof buffer, 0);
  struct nlmsghdr *header = (struct nlmsghdr *)buffer;
  printf("first type %d, sequence %u, fits %d\n", header->nlmsg_type, header->nlmsg_seq, NLMSG_OK(header, len));
  struct ifinfomsg *link = NLMSG_DATA(header);
  printf("index %d\n", link->ifi_index);
  close(fd);
}

static void lookups(void) {
  puts("-- numeric names");
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
  struct addrinfo *found;
  printf("%d\n", getaddrinfo("127.0.0.1", "80", &hints, &found));
  printf("family %d port %d\n", found->ai_family, ntohs(((struct sockaddr_in *)found->ai_addr)->sin_port));
  freeaddrinfo(found);
  printf("%d\n", getaddrinfo("::1", "81", &hints, &found));
  printf("family %d\n", found->ai_family);
  freeaddrinfo(found);
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  printf("%d\n", getaddrinfo(NULL, "82", &hints, &found));
  int count = 0;
  for (struct addrinfo *one = found; one; one = one->ai_next) count++;
  printf("%d of them\n", count);
  freeaddrinfo(found);
}

int main(void) {
  requests();
  listed();
  refused();
  lookups();
  return 0;
}

// run:
// paths: 1
// A program changes routes, and another socket is told. It is not run on the machine, whose routes it would change;
// what is asserted is what Linux does.
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static int asks, listens;

struct request {
  struct nlmsghdr header;
  struct rtmsg route;
  struct rtattr attribute;
  struct in_addr to;
};

/// Asks for a change of the route to a network and returns the error.
static int change(int type, int flags, const char *to, int length, int kind) {
  struct request request = {.header = {sizeof request, type, NLM_F_REQUEST | NLM_F_ACK | flags, 3, 0},
                            .route = {AF_INET, length, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE, kind, 0},
                            .attribute = {8, RTA_DST}};
  inet_pton(AF_INET, to, &request.to);
  assert(send(asks, &request, sizeof request, 0) == sizeof request);
  struct { struct nlmsghdr header; struct nlmsgerr error; } answer;
  assert(recv(asks, &answer, sizeof answer, 0) == sizeof answer);
  assert(answer.header.nlmsg_type == NLMSG_ERROR && answer.header.nlmsg_seq == 3);
  return -answer.error.error;
}

/// What the listener is told: the type, or 0.
static int told(void) {
  struct { struct nlmsghdr header; struct rtmsg route; char rest[200]; } message;
  if (recv(listens, &message, sizeof message, MSG_DONTWAIT) < 0) return 0;
  assert(message.route.rtm_family == AF_INET);
  return message.header.nlmsg_type;
}

/// The error of a datagram to an address.
static int reach(const char *to) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
  inet_pton(AF_INET, to, &address.sin_addr);
  int failed = connect(fd, (struct sockaddr *)&address, sizeof address) ? errno : 0;
  close(fd);
  return failed;
}

int main(void) {
  asks = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  listens = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  struct sockaddr_nl groups = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_ROUTE};
  assert(bind(listens, (struct sockaddr *)&groups, sizeof groups) == 0);
  const int add = NLM_F_CREATE | NLM_F_EXCL;
  assert(reach("192.0.2.9") == ENETUNREACH);
  assert(change(RTM_NEWROUTE, add, "192.0.2.0", 24, RTN_BLACKHOLE) == 0 && told() == RTM_NEWROUTE);
  assert(reach("192.0.2.9") == EINVAL && reach("192.0.3.9") == ENETUNREACH);
  assert(change(RTM_NEWROUTE, add, "192.0.2.0", 24, RTN_BLACKHOLE) == EEXIST && told() == 0);
  assert(change(RTM_NEWROUTE, add, "192.0.2.8", 29, RTN_PROHIBIT) == 0);
  assert(reach("192.0.2.9") == EACCES && reach("192.0.2.1") == EINVAL);
  assert(change(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, "192.0.2.8", 29, RTN_UNREACHABLE) == 0);
  assert(reach("192.0.2.9") == EHOSTUNREACH);
  assert(told() == RTM_NEWROUTE && told() == RTM_NEWROUTE && told() == 0);
  assert(change(RTM_DELROUTE, 0, "192.0.2.0", 24, RTN_BLACKHOLE) == 0 && told() == RTM_DELROUTE);
  assert(change(RTM_DELROUTE, 0, "192.0.2.0", 24, RTN_BLACKHOLE) == ESRCH);
  assert(reach("192.0.2.1") == ENETUNREACH);
  // Without a device or a gateway that leads there.
  assert(change(RTM_NEWROUTE, add, "198.51.100.0", 24, RTN_UNICAST) == ENODEV);
  return 0;
}

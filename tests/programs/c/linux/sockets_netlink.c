// exec:
// Ports, groups and routes of netlink sockets, as far as every host has them; changes only as far as they are refused.
#include "sockets.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

static unsigned port_of(int fd) {
  struct sockaddr_nl own;
  socklen_t len = sizeof own;
  tell("name", getsockname(fd, (struct sockaddr *)&own, &len));
  printf("family %d, length %d, groups %x\n", own.nl_family, (int)len, own.nl_groups);
  return own.nl_pid;
}

static void ports(void) {
  puts("-- ports");
  struct sockaddr_nl own = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_ROUTE};
  int one = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  printf("none %d\n", port_of(one) == 0);
  tell("bind", bind(one, (struct sockaddr *)&own, sizeof own));
  printf("own %d\n", port_of(one) == (unsigned)getpid());
  int other = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  own.nl_pid = getpid();
  tell("taken", bind(other, (struct sockaddr *)&own, sizeof own));
  close(other);
  other = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  int group = RTNLGRP_IPV6_ROUTE;
  tell("join", setsockopt(other, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group));
  printf("still none %d\n", port_of(other) == 0);
  tell("leave", setsockopt(other, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &group, sizeof group));
  port_of(other);
  group = 1000;
  tell("no group", setsockopt(other, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group));
  own.nl_pid = 0;
  own.nl_groups = RTMGRP_NOTIFY;
  tell("anywhere", bind(other, (struct sockaddr *)&own, sizeof own));
  unsigned port = port_of(other);
  printf("another %d\n", port != 0 && port != (unsigned)getpid());
  tell("any other", bind(other, (struct sockaddr *)&own, sizeof own));
  own.nl_pid = port;
  own.nl_groups = RTMGRP_IPV4_IFADDR;
  tell("again", bind(other, (struct sockaddr *)&own, sizeof own));
  port_of(other);
  own.nl_pid = port + 1;
  tell("elsewhere", bind(other, (struct sockaddr *)&own, sizeof own));
  close(one);
  close(other);
}

struct request {
  struct nlmsghdr header;
  struct rtmsg route;
  struct rtattr attribute;
  struct in_addr to;
};

/// Shows a route of the loopback.
static void show(struct nlmsghdr *header) {
  struct rtmsg *route = NLMSG_DATA(header);
  int left = RTM_PAYLOAD(header);
  char to[INET_ADDRSTRLEN] = "";
  int interface = 0, table = 0;
  for (struct rtattr *one = RTM_RTA(route); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
    if (one->rta_type == RTA_DST) inet_ntop(AF_INET, RTA_DATA(one), to, sizeof to);
    if (one->rta_type == RTA_OIF) interface = *(int *)RTA_DATA(one);
    if (one->rta_type == RTA_TABLE) table = *(int *)RTA_DATA(one);
  }
  if (route->rtm_family == AF_INET && interface == 1 && table == RT_TABLE_LOCAL)
    printf("%s/%d type %d scope %d by %d in %d\n", to, route->rtm_dst_len, route->rtm_type, route->rtm_scope,
           route->rtm_protocol, route->rtm_table);
}

static void routes(void) {
  puts("-- routes");
  int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  struct request request = {.header = {NLMSG_LENGTH(sizeof(struct rtmsg)), RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP, 5, 0},
                            .route.rtm_family = AF_INET};
  tell("dump", send(fd, &request, request.header.nlmsg_len, 0));
  unsigned port = port_of(fd);
  static char buffer[65536];
  for (int done = 0; !done;) {
    int len = recv(fd, buffer, sizeof buffer, 0);
    for (struct nlmsghdr *one = (struct nlmsghdr *)buffer; NLMSG_OK(one, len); one = NLMSG_NEXT(one, len)) {
      if (one->nlmsg_seq != 5 || one->nlmsg_pid != port) puts("wrong");
      done |= one->nlmsg_type == NLMSG_DONE;
      if (one->nlmsg_type == RTM_NEWROUTE) show(one);
    }
  }
  close(fd);
}

static void refused(void) {
  puts("-- refused");
  if (setuid(65534)) puts("setuid");
  int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  struct request request = {
      .header = {sizeof request, RTM_NEWROUTE, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, 9, 0},
      .route = {AF_INET, 24, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE, RTN_BLACKHOLE, 0},
      .attribute = {8, RTA_DST}};
  inet_pton(AF_INET, "198.51.100.0", &request.to);
  tell("add", send(fd, &request, sizeof request, 0));
  struct { struct nlmsghdr header; struct nlmsgerr error; char rest[500]; } answer;
  long len = recv(fd, &answer, sizeof answer, 0);
  printf("%d: type %d, sequence %d, error %d, of type %d\n", len >= 36, answer.header.nlmsg_type, answer.header.nlmsg_seq,
         answer.error.error, answer.error.msg.nlmsg_type);
  close(fd);
}

int main(void) {
  ports();
  routes();
  refused();
  return 0;
}

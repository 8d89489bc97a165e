// exec:
// Groups at the loopback: joining and leaving, who receives, what comes back to the sender.
#include "sockets.h"


static struct sockaddr_in group_at(const char *group, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, group, &address.sin_addr);
  return address;
}

static int change(int fd, int name, const char *group, const char *interface) {
  struct ip_mreq request;
  inet_pton(AF_INET, group, &request.imr_multiaddr);
  inet_pton(AF_INET, interface, &request.imr_interface);
  return setsockopt(fd, IPPROTO_IP, name, &request, sizeof request);
}

static int receiver(int port, const char *address) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  struct sockaddr_in at = group_at(address, port);
  tell("bind", bind(fd, (struct sockaddr *)&at, sizeof at));
  return fd;
}

int main(void) {
  own_network();
  enum { PORT = 45679 };
  int joined = receiver(PORT, "0.0.0.0"), other = receiver(PORT, "0.0.0.0"), only = receiver(PORT, "0.0.0.0");
  int bound = receiver(PORT, "239.1.2.3"), sender = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = group_at("239.1.2.3", PORT);
  struct in_addr interface = {htonl(INADDR_LOOPBACK)};
  tell("interface", setsockopt(sender, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface));
  printf("loop %d, hops %d\n", option(sender, IPPROTO_IP, IP_MULTICAST_LOOP),
         option(sender, IPPROTO_IP, IP_MULTICAST_TTL));
  tell("to nobody", sendto(sender, "a", 1, 0, (struct sockaddr *)&to, sizeof to));
  tell_bytes("not joined", joined, 9, MSG_DONTWAIT);
  tell("only its own", set_option(only, IPPROTO_IP, IP_MULTICAST_ALL, 0));
  tell("join", change(joined, IP_ADD_MEMBERSHIP, "239.1.2.3", "127.0.0.1"));
  tell("join again", change(joined, IP_ADD_MEMBERSHIP, "239.1.2.3", "127.0.0.1"));
  tell("no group", change(joined, IP_ADD_MEMBERSHIP, "10.1.2.3", "127.0.0.1"));
  tell("no interface", change(joined, IP_ADD_MEMBERSHIP, "239.1.2.4", "203.0.113.9"));
  tell("sent", sendto(sender, "bc", 2, 0, (struct sockaddr *)&to, sizeof to));
  tell_bytes("joined", joined, 9, MSG_DONTWAIT);
  tell_bytes("of the host", other, 9, MSG_DONTWAIT);
  tell_bytes("only its own", only, 9, MSG_DONTWAIT);
  tell_bytes("bound to the group", bound, 9, MSG_DONTWAIT);
  to = group_at("239.1.2.9", PORT);
  tell("another group", sendto(sender, "d", 1, 0, (struct sockaddr *)&to, sizeof to));
  tell_bytes("joined", joined, 9, MSG_DONTWAIT);
  to = group_at("239.1.2.3", PORT);
  tell("no loop", set_option(sender, IPPROTO_IP, IP_MULTICAST_LOOP, 0));
  tell("sent", sendto(sender, "e", 1, 0, (struct sockaddr *)&to, sizeof to));
  tell_bytes("joined", joined, 9, MSG_DONTWAIT);
  unsigned char one = 1;
  tell("loop", setsockopt(sender, IPPROTO_IP, IP_MULTICAST_LOOP, &one, 1));
  struct ip_mreqn with_index = {.imr_ifindex = (int)if_nametoindex("lo")};
  inet_pton(AF_INET, "239.1.2.3", &with_index.imr_multiaddr);
  tell("join by index", setsockopt(only, IPPROTO_IP, IP_ADD_MEMBERSHIP, &with_index, sizeof with_index));
  tell("leave", change(joined, IP_DROP_MEMBERSHIP, "239.1.2.3", "127.0.0.1"));
  tell("leave again", change(joined, IP_DROP_MEMBERSHIP, "239.1.2.3", "127.0.0.1"));
  tell("sent", sendto(sender, "fg", 2, 0, (struct sockaddr *)&to, sizeof to));
  tell_bytes("only its own", only, 9, MSG_DONTWAIT);
  struct sockaddr_in from;
  char text[9];
  set_option(joined, IPPROTO_IP, IP_PKTINFO, 1);
  tell("of the host", recvfrom(joined, text, 9, MSG_DONTWAIT, (struct sockaddr *)&from, &(socklen_t){sizeof from}));
  printf("from %s\n", inet_ntoa(from.sin_addr));
  tell("wrong interface", setsockopt(sender, IPPROTO_IP, IP_MULTICAST_IF, &to.sin_addr, sizeof interface));
  close(only);
  tell("sent", sendto(sender, "h", 1, 0, (struct sockaddr *)&to, sizeof to));
  tell_bytes("nobody has joined", other, 9, MSG_DONTWAIT);
  tell_bytes("the last one", other, 9, MSG_DONTWAIT);
  tell_bytes("no more", other, 9, MSG_DONTWAIT);
  int tcp = socket(AF_INET, SOCK_STREAM, 0);
  tell("join of a connection", change(tcp, IP_ADD_MEMBERSHIP, "239.1.2.3", "127.0.0.1"));
}

// exec:
// UDP: boundaries, addresses, connected sockets and what they hear of nobody being there.
#include "sockets.h"

static int udp(struct sockaddr_in *address) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  *address = loopback(0);
  bind(fd, (struct sockaddr *)address, sizeof *address);
  socklen_t len = sizeof *address;
  getsockname(fd, (struct sockaddr *)address, &len);
  return fd;
}

static void boundaries(void) {
  puts("-- boundaries");
  struct sockaddr_in to, from;
  int receiver = udp(&to), sender = udp(&from);
  tell_events("fresh", receiver);
  sendto(sender, "first", 5, 0, (struct sockaddr *)&to, sizeof to);
  tell("empty", sendto(sender, "", 0, 0, (struct sockaddr *)&to, sizeof to));
  sendto(sender, "third one", 9, 0, (struct sockaddr *)&to, sizeof to);
  tell_events("with messages", receiver);
  int bytes = -1;
  tell("FIONREAD", ioctl(receiver, FIONREAD, &bytes));
  printf("bytes %d\n", bytes);
  tell_bytes("peek", receiver, 100, MSG_PEEK);
  struct sockaddr_in name;
  socklen_t len = sizeof name;
  char buffer[100];
  tell("recvfrom", recvfrom(receiver, buffer, 100, 0, (struct sockaddr *)&name, &len));
  printf("from %s, right port %d, length %u\n", inet_ntoa(name.sin_addr), name.sin_port == from.sin_port, len);
  tell_bytes("empty", receiver, 100, 0);
  tell_bytes("cut", receiver, 4, 0);
  tell_bytes("nothing left", receiver, 4, MSG_DONTWAIT);
  sendto(sender, "third one", 9, 0, (struct sockaddr *)&to, sizeof to);
  tell_bytes("cut, true length", receiver, 4, MSG_TRUNC);
  sendto(sender, "vectors", 7, 0, (struct sockaddr *)&to, sizeof to);
  char one[3] = "", two[10] = "";
  struct iovec parts[2] = {{one, 2}, {two, 9}};
  struct msghdr message = {.msg_name = &name, .msg_namelen = sizeof name, .msg_iov = parts, .msg_iovlen = 2};
  tell("recvmsg", recvmsg(receiver, &message, 0));
  printf("%s %s %u flags %x\n", one, two, message.msg_namelen, message.msg_flags);
  sendto(sender, "vectors", 7, 0, (struct sockaddr *)&to, sizeof to);
  parts[1].iov_len = 1;
  tell("recvmsg", recvmsg(receiver, &message, 0));
  printf("cut %d\n", message.msg_flags == MSG_TRUNC);
  static char large[70000];
  tell("too large", sendto(sender, large, 70000, 0, (struct sockaddr *)&to, sizeof to));
  tell("largest", sendto(sender, large, 65507, 0, (struct sockaddr *)&to, sizeof to));
  tell("one more", sendto(sender, large, 65508, 0, (struct sockaddr *)&to, sizeof to));
  tell("largest", recv(receiver, large, sizeof large, 0));
  tell("read of nothing", read(receiver, buffer, 0));
  struct iovec two_parts[2] = {{"ab", 2}, {"cd", 2}};
  connect(sender, (struct sockaddr *)&to, sizeof to);
  tell("writev", writev(sender, two_parts, 2));
  tell_bytes("one message", receiver, 100, 0);
  close(sender), close(receiver);
}

static void addresses(void) {
  puts("-- addresses");
  struct sockaddr_in to;
  int receiver = udp(&to), fd = socket(AF_INET, SOCK_DGRAM, 0);
  tell("send without", send(fd, "x", 1, 0));
  tell("listen", listen(fd, 1));
  tell("accept", accept(fd, NULL, NULL));
  tell("shutdown", shutdown(fd, SHUT_RD));
  struct sockaddr_in zero = loopback(0);
  tell("port 0", sendto(fd, "x", 1, 0, (struct sockaddr *)&zero, sizeof zero));
  tell("short", sendto(fd, "x", 1, 0, (struct sockaddr *)&to, 4));
  to.sin_family = AF_UNIX;
  tell("family", sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to));
  to.sin_family = AF_INET;
  struct sockaddr_in all = {.sin_family = AF_INET, .sin_port = to.sin_port, .sin_addr.s_addr = 0xffffffff};
  tell("broadcast", sendto(fd, "x", 1, 0, (struct sockaddr *)&all, sizeof all));
  tell("sendto", sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof to));
  struct sockaddr_in name;
  socklen_t len = sizeof name;
  getsockname(fd, (struct sockaddr *)&name, &len);
  printf("bound at %s, port %s\n", inet_ntoa(name.sin_addr), name.sin_port ? "given" : "none");
  len = sizeof name;
  recvfrom(receiver, &zero, 1, 0, (struct sockaddr *)&name, &len);
  printf("from %s\n", inet_ntoa(name.sin_addr));
  tell("port taken", bind(fd, (struct sockaddr *)&to, sizeof to));
  int other = socket(AF_INET, SOCK_DGRAM, 0);
  tell("port taken", bind(other, (struct sockaddr *)&to, sizeof to));
  tell("getpeername", getpeername(fd, (struct sockaddr *)&name, &len));
  close(fd), close(other), close(receiver);
}

static void connected(void) {
  puts("-- connected");
  struct sockaddr_in to, from, stranger_address;
  int receiver = udp(&to), sender = udp(&from), stranger = udp(&stranger_address);
  tell("connect", connect(sender, (struct sockaddr *)&to, sizeof to));
  tell("send", send(sender, "hello", 5, 0));
  tell_bytes("recv", receiver, 10, 0);
  sendto(stranger, "stranger", 8, 0, (struct sockaddr *)&from, sizeof from);
  tell_bytes("strangers are not heard", sender, 10, MSG_DONTWAIT);
  sendto(receiver, "answer", 6, 0, (struct sockaddr *)&from, sizeof from);
  tell_bytes("the peer is", sender, 10, 0);
  tell("elsewhere all the same", sendto(sender, "x", 1, 0, (struct sockaddr *)&stranger_address, sizeof to));
  tell_bytes("it arrives", stranger, 10, 0);
  struct sockaddr_in name;
  socklen_t len = sizeof name;
  tell("getpeername", getpeername(sender, (struct sockaddr *)&name, &len));
  printf("right %d\n", name.sin_port == to.sin_port);
  close(receiver);
  tell("send to nobody", send(sender, "x", 1, 0));
  tell_events("events", sender);
  tell_bytes("refused", sender, 10, 0);
  tell_bytes("once", sender, 10, MSG_DONTWAIT);
  tell("send to nobody", send(sender, "x", 1, 0));
  tell("send refused", send(sender, "x", 1, 0));
  tell("send to nobody", send(sender, "x", 1, 0));
  printf("error %s\n", error_name(socket_error(sender)));
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  tell("disconnect", connect(sender, &none, sizeof none));
  tell("send", send(sender, "x", 1, 0));
  tell("getpeername", getpeername(sender, (struct sockaddr *)&name, &len));
  sendto(stranger, "stranger", 8, 0, (struct sockaddr *)&from, sizeof from);
  tell_bytes("strangers are heard", sender, 10, MSG_DONTWAIT);
  tell("unconnected to nobody", sendto(sender, "x", 1, 0, (struct sockaddr *)&to, sizeof to));
  printf("error %s\n", error_name(socket_error(sender)));
  connect(sender, (struct sockaddr *)&stranger_address, sizeof to);
  tell("shutdown", shutdown(sender, SHUT_WR));
  tell("send", send(sender, "x", 1, 0));
  tell("shutdown", shutdown(sender, SHUT_RD));
  tell_bytes("recv", sender, 10, 0);
  tell_bytes("without waiting", sender, 10, MSG_DONTWAIT);
  tell_events("events", sender);
  close(sender), close(stranger);
}

static void many(void) {
  puts("-- many at once");
  struct sockaddr_in to;
  int receiver = udp(&to), sender = socket(AF_INET, SOCK_DGRAM, 0);
  connect(sender, (struct sockaddr *)&to, sizeof to);
  char texts[4][8] = {"a", "bb", "ccc", "dddd"};
  struct iovec parts[4];
  struct mmsghdr messages[4];
  memset(messages, 0, sizeof messages);
  for (int i = 0; i < 4; i++) {
    parts[i] = (struct iovec){texts[i], i + 1};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  tell("sendmmsg", sendmmsg(sender, messages, 4, 0));
  for (int i = 0; i < 4; i++) printf("%u ", messages[i].msg_len), parts[i].iov_len = 8, memset(texts[i], 0, 8);
  puts("");
  tell("recvmmsg", recvmmsg(receiver, messages, 3, 0, NULL));
  tell("recvmmsg", recvmmsg(receiver, messages + 3, 1, MSG_DONTWAIT, NULL));
  for (int i = 0; i < 4; i++) printf("%s %u ", texts[i], messages[i].msg_len);
  puts("");
  tell("recvmmsg", recvmmsg(receiver, messages, 4, MSG_DONTWAIT, NULL));
  sendmmsg(sender, messages, 2, 0);
  tell("recvmmsg for one", recvmmsg(receiver, messages, 4, MSG_WAITFORONE, NULL));
  close(sender), close(receiver);
}

static void both_families(void) {
  puts("-- both families");
  int six = socket(AF_INET6, SOCK_DGRAM, 0), four = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in6 name = {.sin6_family = AF_INET6};
  socklen_t len = sizeof name;
  tell("bind", bind(six, (struct sockaddr *)&name, sizeof name));
  getsockname(six, (struct sockaddr *)&name, &len);
  struct sockaddr_in to = loopback(ntohs(name.sin6_port));
  tell("sendto", sendto(four, "four", 4, 0, (struct sockaddr *)&to, sizeof to));
  char buffer[16], text[64];
  len = sizeof name;
  tell("recvfrom", recvfrom(six, buffer, sizeof buffer, 0, (struct sockaddr *)&name, &len));
  printf("from %s\n", inet_ntop(AF_INET6, &name.sin6_addr, text, sizeof text));
  tell("answer", sendto(six, "back", 4, 0, (struct sockaddr *)&name, len));
  tell_bytes("recv", four, 10, 0);
  close(six), close(four);
}

static void arrival(void) {
  puts("-- where it arrived");
  int receiver = socket(AF_INET, SOCK_DGRAM, 0), sender = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in any = {.sin_family = AF_INET};
  bind(receiver, (struct sockaddr *)&any, sizeof any);
  socklen_t len = sizeof any;
  getsockname(receiver, (struct sockaddr *)&any, &len);
  tell("option", set_option(receiver, IPPROTO_IP, IP_PKTINFO, 1));
  any.sin_addr.s_addr = htonl(0x7f000003);
  tell("sendto", sendto(sender, "x", 1, 0, (struct sockaddr *)&any, sizeof any));
  char control[128], byte;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  tell("recvmsg", recvmsg(receiver, &message, 0));
  struct cmsghdr *header = CMSG_FIRSTHDR(&message);
  struct in_pktinfo info;
  memcpy(&info, CMSG_DATA(header), sizeof info);
  printf("level %d type %d interface %d", header->cmsg_level, header->cmsg_type, info.ipi_ifindex);
  printf(" to %s", inet_ntoa(info.ipi_addr));
  printf(" answer from %s\n", inet_ntoa(info.ipi_spec_dst));
  close(receiver), close(sender);
}

int main(void) {
  boundaries();
  arrival();
  addresses();
  connected();
  many();
  both_families();
  return 0;
}

// exec:
// Packet sockets at the loopback: whole frames and their payloads, what goes out, what comes in, addresses.
#include "sockets.h"

#include <netinet/ip.h>
#include <netpacket/packet.h>

enum { OWN = 0x88b5, ALL = 3 };

static void tell_frame(const char *what, int fd) {
  unsigned char frame[2048];
  struct sockaddr_ll from;
  memset(&from, 0, sizeof from);
  socklen_t len = sizeof from;
  long got = recvfrom(fd, frame, sizeof frame, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
  if (got < 0) {
    printf("%s: %s\n", what, error_name(errno));
    return;
  }
  printf("%s: %ld, family %d, protocol %04x, interface %d, hardware %d, kind %d, address %d (%u):", what, got,
         from.sll_family, ntohs(from.sll_protocol), from.sll_ifindex, from.sll_hatype, from.sll_pkttype,
         from.sll_halen, len);
  for (long at = 0; at < got && at < 20; at++) printf(" %02x", frame[at]);
  puts("");
}

static struct sockaddr_ll at_loopback(int protocol) {
  struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(protocol)};
  address.sll_ifindex = (int)if_nametoindex("lo");
  address.sll_halen = 6;
  return address;
}

static void frames(void) {
  puts("-- frames");
  int raw = socket(AF_PACKET, SOCK_RAW, htons(OWN)), cooked = socket(AF_PACKET, SOCK_DGRAM, htons(OWN));
  int sender = socket(AF_PACKET, SOCK_RAW, 0);
  struct sockaddr_ll to = at_loopback(OWN);
  unsigned char frame[20] = {[12] = OWN >> 8, OWN & 0xff, 'h', 'e', 'l', 'l', 'o', '!'};
  tell("nowhere", send(sender, frame, sizeof frame, 0));
  tell("frame", sendto(sender, frame, sizeof frame, 0, (struct sockaddr *)&to, sizeof to));
  tell_events("arrived", raw);
  tell_frame("whole", raw);
  tell_frame("payload", cooked);
  tell_frame("not its protocol", sender);
  tell("cooked", sendto(cooked, "abcd", 4, 0, (struct sockaddr *)&to, sizeof to));
  tell_frame("whole", raw);
  tell_frame("payload", cooked);
  memset(frame, 0xff, 6);
  sendto(sender, frame, sizeof frame, 0, (struct sockaddr *)&to, sizeof to);
  tell_frame("to all", raw);
  tell("too short", sendto(sender, frame, 9, 0, (struct sockaddr *)&to, sizeof to));
  to.sll_ifindex = 999;
  tell("no such interface", sendto(sender, frame, sizeof frame, 0, (struct sockaddr *)&to, sizeof to));
  close(raw);
  close(cooked);
  close(sender);
}

static void bindings(void) {
  puts("-- bindings");
  int fd = socket(AF_PACKET, SOCK_DGRAM, 0), sender = socket(AF_PACKET, SOCK_DGRAM, 0);
  struct sockaddr_ll own;
  memset(&own, 0, sizeof own);
  socklen_t len = sizeof own;
  tell("name", getsockname(fd, (struct sockaddr *)&own, &len));
  printf("%u: %d %04x %d\n", len, own.sll_family, ntohs(own.sll_protocol), own.sll_ifindex);
  struct sockaddr_ll at = at_loopback(OWN);
  tell("bind", bind(fd, (struct sockaddr *)&at, sizeof at));
  len = sizeof own;
  tell("name", getsockname(fd, (struct sockaddr *)&own, &len));
  printf("%u: %d %04x %d %d %d\n", len, own.sll_family, ntohs(own.sll_protocol), own.sll_ifindex, own.sll_hatype,
         own.sll_halen);
  at.sll_protocol = 0;
  tell("bind", bind(sender, (struct sockaddr *)&at, sizeof at));
  at.sll_protocol = htons(OWN);
  tell("sent", sendto(sender, "1234", 4, 0, (struct sockaddr *)&at, sizeof at));
  tell_frame("received", fd);
  at.sll_ifindex = 999;
  tell("no such interface", bind(fd, (struct sockaddr *)&at, sizeof at));
  tell("short address", bind(fd, (struct sockaddr *)&at, 8));
  tell("listen", listen(fd, 1));
  tell("connect", connect(fd, (struct sockaddr *)&at, sizeof at));
  tell("peer", getpeername(fd, (struct sockaddr *)&at, &len));
  tell("shutdown", shutdown(fd, SHUT_RDWR));
  tell_ok("stream", socket(AF_PACKET, SOCK_STREAM, 0));
  close(fd);
  close(sender);
}

static void datagrams(void) {
  puts("-- datagrams");
  int all = socket(AF_PACKET, SOCK_DGRAM, htons(ALL)), ip = socket(AF_PACKET, SOCK_DGRAM, htons(0x0800));
  struct sockaddr_ll at = at_loopback(0);
  bind(all, (struct sockaddr *)&at, sizeof at);
  bind(ip, (struct sockaddr *)&at, sizeof at);
  int server = socket(AF_INET, SOCK_DGRAM, 0), udp = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in to = loopback(45678);
  tell("server", bind(server, (struct sockaddr *)&to, sizeof to));
  sendto(udp, "datagram", 8, 0, (struct sockaddr *)&to, sizeof to);
  for (int i = 0; i < 3; i++) {
    unsigned char packet[256];
    struct sockaddr_ll from;
    socklen_t len = sizeof from;
    int fd = i < 2 ? all : ip;
    long got = recvfrom(fd, packet, sizeof packet, MSG_DONTWAIT, (struct sockaddr *)&from, &len);
    printf("%ld of kind %d, protocol %04x: version %d, protocol %d, port %d, \"%.8s\"\n", got, from.sll_pkttype,
           ntohs(from.sll_protocol), packet[0] >> 4, packet[9], packet[22] << 8 | packet[23], packet + 28);
  }
  tell_frame("no more", ip);
  tell_bytes("received", server, 9, 0);
  // The same datagram as a frame: nobody on a wire has such an address.
  unsigned char frame[] = {0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1,
                           0x12, 0x34, 45678 >> 8, 45678 & 0xff, 0, 12, 0, 0, 'f', 'a', 'k', 'e'};
  unsigned sum = 0;
  for (int i = 0; i < 20; i += 2) sum += frame[i] << 8 | frame[i + 1];
  sum = ~((sum & 0xffff) + (sum >> 16));
  frame[10] = sum >> 8 & 0xff;
  frame[11] = sum & 0xff;
  at = at_loopback(0x0800);
  tell("frame", sendto(ip, frame, sizeof frame, 0, (struct sockaddr *)&at, sizeof at));
  struct sockaddr_in from = {0};
  char text[16] = "";
  tell("received", recvfrom(server, text, 15, MSG_DONTWAIT, (struct sockaddr *)&from, &(socklen_t){sizeof from}));
  printf("\"%s\" from %s:%d\n", text, inet_ntoa(from.sin_addr), ntohs(from.sin_port));
  frame[11] ^= 1;
  tell("broken frame", sendto(ip, frame, sizeof frame, 0, (struct sockaddr *)&at, sizeof at));
  tell_bytes("dropped", server, 9, MSG_DONTWAIT);
}

int main(void) {
  own_network();
  frames();
  bindings();
  datagrams();
}

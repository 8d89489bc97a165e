// One program that is three hosts: two voters and a counter that announces what they agree on. It has counted a vote that is
// lost as a yes.

#include <netinet/in.h>
#include <netklee.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { PORT = 7000, VOTERS = 2 };

static struct sockaddr_in at(uint8_t last) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  address.sin_addr.s_addr = klee_net_make_ipv4(10, 0, 0, last);
  return address;
}

static int bound(void) {
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  return bind(s, (struct sockaddr *)&own, sizeof own) ? -1 : s;
}

static int main_counter(void) {
  int s = bound();
  struct timeval wait = {.tv_sec = 1};
  setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  unsigned char vote, all = 1;
  for (int i = 0; i < VOTERS; i++)
    if (recv(s, &vote, 1, 0) == 1) all &= vote;
  klee_invariant_expose_data(1, "decision", &all, 1);
  for (int i = 0; i < VOTERS; i++) {
    struct sockaddr_in to = at(10 + i);
    sendto(s, &all, 1, 0, (struct sockaddr *)&to, sizeof to);
  }
  return 0;
}

static int main_voter(void) {
  int s = bound();
  unsigned char vote, decision;
  klee_make_symbolic(&vote, 1, "vote");
  vote = vote == 'y';
  klee_invariant_expose_data(1, "vote", &vote, 1);
  struct sockaddr_in to = at(1);
  sendto(s, &vote, 1, 0, (struct sockaddr *)&to, sizeof to);
  if (recv(s, &decision, 1, 0) == 1) klee_invariant_expose_data(1, "decision", &decision, 1);
  return 0;
}

static int boot(uint8_t last, const char *name, int server, int sequence) {
  klee_net_add_interface(1, "lan", NULL);
  klee_net_add_ipv4_address(klee_net_make_ipv4(10, 0, 0, last), 24, 1, 1, NULL);
  return klee_net_host_setup(name, server, sequence);
}

int main(void) {
  klee_net_add_network("lan");
  int machine = klee_int("machine");
  if (machine == 1) return boot(1, "counter", 1, 0) ? 1 : main_counter();
  if (machine == 2) return boot(10, "voter0", 0, 1) ? 1 : main_voter();
  return boot(11, "voter1", 0, 2) ? 1 : main_voter();
}

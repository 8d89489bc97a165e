/* A proposer: asks for a promise with its ballot, then for its value, or for the one that was accepted before. */
#include "paxos.h"
#include <stdlib.h>

/* Not static: what nothing else sets, a compiler may take for a constant. */
struct {
  uint8_t ballot, proposed;
  uint8_t is_promised; /* where its state is given: it is in the second phase already */
} me;

int main(int argc, char **argv) {
  if (!me.is_promised) {
    if (argc != 4) return 1;
    me.ballot = (uint8_t)(argv[2][0] - '0');
    me.proposed = (uint8_t)(argv[3][0] - '0');
  }
  if (me.ballot < 1 || me.ballot > MOST_BALLOT || me.proposed < LEAST_VALUE || me.proposed > MOST_VALUE) return 1;
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  inet_pton(AF_INET, argv[1], &there.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (connect(fd, (struct sockaddr *)&there, sizeof there)) return 1;
  struct message message = {.kind = PREPARE, .ballot = me.ballot};
  if (!me.is_promised) {
    send(fd, &message, sizeof message, 0);
    if (recv(fd, &message, sizeof message, 0) != sizeof message) return 1;
    if (message.kind != PROMISE || message.ballot != me.ballot) return 1;
    if (message.value) me.proposed = message.value;
    sleep(2);
  }
  message = (struct message){.kind = ACCEPT, .ballot = me.ballot, .value = me.proposed};
  send(fd, &message, sizeof message, 0);
  return recv(fd, &message, sizeof message, 0) != sizeof message;
}

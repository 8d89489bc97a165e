/* An acceptor: promises ballots, and accepts values in the second phase. It does not ask whether the value is one that a
 * proposer may propose. */
#include "paxos.h"

static struct {
  uint8_t promised;
  uint8_t accepted; /* the value, or 0 */
} state;

static int is_accepted(const struct message *message) {
#ifdef FIXED
  if (message->ballot != state.promised) return 0;
  if (message->value < LEAST_VALUE || message->value > MOST_VALUE) return 0;
#endif
  return state.promised != 0 && message->ballot >= state.promised;
}

int main(void) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)}, from;
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (bind(fd, (struct sockaddr *)&here, sizeof here)) return 1;
  for (;;) {
    struct message message;
    socklen_t size = sizeof from;
    if (recvfrom(fd, &message, sizeof message, 0, (struct sockaddr *)&from, &size) != sizeof message) continue;
    if (message.kind == PREPARE && message.ballot > state.promised && message.ballot <= MOST_BALLOT) {
      state.promised = message.ballot;
      message.kind = PROMISE;
      message.value = state.accepted;
    } else if (message.kind == ACCEPT && is_accepted(&message)) {
      state.promised = message.ballot;
      state.accepted = message.value;
      message.kind = ACCEPTED;
    } else {
      continue;
    }
    sendto(fd, &message, sizeof message, 0, (struct sockaddr *)&from, size);
  }
}

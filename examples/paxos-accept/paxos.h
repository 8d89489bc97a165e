/* Single-decree Paxos between a proposer and an acceptor, over datagrams. */
#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 5000, PREPARE = 1, PROMISE, ACCEPT, ACCEPTED, MOST_BALLOT = 3, LEAST_VALUE = 1, MOST_VALUE = 9 };

struct message {
  uint8_t kind;
  uint8_t ballot;
  uint8_t value; /* of an accept; in a promise, what was accepted before, or 0 */
};

/* Figure 4.2: a server that reads and writes its data for known peers. It forgets to check that an address to read from
 * is not negative. */
#include "protocol.h"
#include <arpa/inet.h>
#include <sys/socket.h>

static int16_t data[DATASIZE];
static const uint8_t peers[] = {1, 2, 5};

static int is_peer(uint8_t sender) {
  int found = 0;
  for (unsigned i = 0; i < sizeof peers; i++) found |= peers[i] == sender;
  return found;
}

int main(void) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)}, from;
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (bind(fd, (struct sockaddr *)&here, sizeof here)) return 1;
  for (;;) {
    struct message message;
    socklen_t size = sizeof from;
    if (recvfrom(fd, &message, sizeof message, 0, (struct sockaddr *)&from, &size) != sizeof message) continue;
    if (!is_peer(message.sender)) continue;
    if (message.crc != crc_of(&message)) continue;
    int address = message.address;
    switch (message.request) {
    case READ:
      if (address >= DATASIZE) continue;
#ifdef FIXED
      if (address < 0) continue;
#endif
      message.request = REPLY;
      message.value = data[address];
      break;
    case WRITE:
      if (address >= DATASIZE || address < 0) continue;
      data[address] = message.value;
      message.request = ACK;
      break;
    default:
      continue;
    }
    sendto(fd, &message, sizeof message, 0, (struct sockaddr *)&from, size);
  }
}

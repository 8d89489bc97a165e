/* Figure 4.3: a client that reads a request from its standard input, checks it and sends it. */
#include "protocol.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static const uint8_t known[] = {1, 2, 5};

int main(int argc, char **argv) {
  struct {
    uint8_t peer, operation;
    int16_t address, value;
  } input;
  if (argc < 2 || read(0, &input, sizeof input) != sizeof input) return 1;
  if (input.address >= DATASIZE) return 1;
  if (input.address < 0) return 1;
  int is_known = 0;
  for (unsigned i = 0; i < sizeof known; i++) is_known |= known[i] == input.peer;
  if (!is_known) return 1;

  struct message message = {.sender = input.peer, .address = input.address};
  if (input.operation == READ) {
    message.request = READ;
  } else if (input.operation == WRITE) {
    message.request = WRITE;
    message.value = input.value;
  } else {
    return 1;
  }
  message.crc = crc_of(&message);

  struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  inet_pton(AF_INET, argv[1], &server.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  sendto(fd, &message, sizeof message, 0, (struct sockaddr *)&server, sizeof server);
  recv(fd, &message, sizeof message, 0);
  return 0;
}

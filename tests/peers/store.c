// A server that keeps a number and the length of a list: store PORT. It runs live and as a host of a world.
// A line is a command: clear, get, set N, inc, dec, push, pop. The answer is a line with a number.
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = 64 };

static long number, length;

static long done(const char *line) {
  if (strcmp(line, "clear") == 0) return number = length = 0;
  if (strncmp(line, "set ", 4) == 0) return number = atol(line + 4);
  if (strcmp(line, "inc") == 0) return ++number;
  if (strcmp(line, "dec") == 0) return --number;
  if (strcmp(line, "push") == 0) return ++length;
  if (strcmp(line, "pop") == 0) return length > 0 ? --length : 0;
  return number;
}

int main(int count, char **words) {
  static char lines[CLIENTS][256];
  static size_t sizes[CLIENTS];
  struct pollfd all[CLIENTS] = {{.fd = socket(AF_INET, SOCK_STREAM, 0), .events = POLLIN}};
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(count > 1 ? atoi(words[1]) : 7)};
  int on = 1, open = 1;
  setsockopt(all[0].fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(all[0].fd, (struct sockaddr *)&own, sizeof own) || listen(all[0].fd, CLIENTS)) return 1;
  while (poll(all, open, -1) > 0) {
    for (int at = open - 1; at > 0; at--) {
      if (!all[at].revents) continue;
      char *line = lines[at];
      ssize_t got = read(all[at].fd, line + sizes[at], sizeof lines[at] - 1 - sizes[at]);
      if (got <= 0) {
        close(all[at].fd);
        open--;
        all[at] = all[open];
        memcpy(lines[at], lines[open], sizeof lines[at]);
        sizes[at] = sizes[open];
        continue;
      }
      sizes[at] += (size_t)got;
      line[sizes[at]] = 0;
      for (char *end; (end = strchr(line, '\n'));) {
        *end = 0;
        char answer[32];
        int size = sprintf(answer, "%ld\n", done(line));
        if (write(all[at].fd, answer, (size_t)size) != size) return 2;
        sizes[at] -= (size_t)(end + 1 - line);
        memmove(line, end + 1, sizes[at] + 1);
      }
    }
    if (all[0].revents && open < CLIENTS) {
      all[open] = (struct pollfd){.fd = accept(all[0].fd, 0, 0), .events = POLLIN};
      sizes[open++] = 0;
    }
  }
  return 0;
}

// Uses a memcached over a Unix socket, or sends what one of its bugs needs:
// memcached_load SOCKET REQUESTS, memcached_load SOCKET extras|connections
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { CONNECTIONS = 4, BATCH = 32, KEYS = 1000 };

static int join_server(const char *path) {
  struct sockaddr_un server = {.sun_family = AF_UNIX};
  strncpy(server.sun_path, path, sizeof server.sun_path - 1);
  for (int tries = 0; tries < 2000; tries++) {
    int own = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(own, (struct sockaddr *)&server, sizeof server) == 0) return own;
    close(own);
    usleep(5000);
  }
  fprintf(stderr, "no server at %s\n", path);
  exit(1);
}

static void send_all(int server, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t sent = write(server, bytes, size);
    if (sent <= 0) exit(1);
    bytes += sent;
    size -= (size_t)sent;
  }
}

// One request in ten stores, the others read: as many answers come as ends are counted.
static void batch(int server, unsigned *number) {
  static char out[BATCH * 400], in[BATCH * 400];
  size_t size = 0, wanted = 0;
  for (int at = 0; at < BATCH; at++) {
    *number = *number * 1664525u + 1013904223u;
    unsigned key = (*number >> 8) % KEYS;
    if (at % 10 == 0)
      size += (size_t)sprintf(out + size, "set key-%u 0 0 100\r\n%0100u\r\n", key, key);
    else
      size += (size_t)sprintf(out + size, "get key-%u\r\n", key);
    wanted++;
  }
  send_all(server, out, size);
  // Each answer ends with STORED or END.
  size_t got = 0, ends = 0, looked = 0;
  while (ends < wanted) {
    ssize_t more = read(server, in + got, sizeof in - 1 - got);
    if (more <= 0) exit(1);
    got += (size_t)more;
    in[got] = 0;
    for (char *line; (line = strchr(in + looked, '\n')); looked = (size_t)(line - in) + 1)
      ends += strncmp(in + looked, "END", 3) == 0 || strncmp(in + looked, "STORED", 6) == 0;
  }
}

int main(int count, char **words) {
  if (count != 3) return 2;
  int servers[CONNECTIONS];
  for (int at = 0; at < CONNECTIONS; at++) servers[at] = join_server(words[1]);
  char answer[4096];
  if (strcmp(words[2], "extras") == 0) {
    // A binary NOOP whose extras have 200 bytes, where 20 are the most that any command has.
    char message[24 + 200] = {(char)0x80, 0x0a, 0, 0, (char)200, 0, 0, 0, 0, 0, 0, (char)200};
    send_all(servers[0], message, sizeof message);
    return read(servers[0], answer, sizeof answer) < 0;
  }
  if (strcmp(words[2], "connections") == 0) {
    send_all(servers[0], "stats conns\r\n", 13);
    return read(servers[0], answer, sizeof answer) < 0;
  }
  unsigned number = 1;
  for (long left = atol(words[2]) / BATCH; left > 0; left--) batch(servers[left % CONNECTIONS], &number);
  return 0;
}

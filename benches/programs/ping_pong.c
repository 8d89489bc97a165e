// A parent and a child send one byte to and fro, over a TCP connection or over two pipes: ping_pong tcp|pipe ROUNDS
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void connect_both(int ends[2]) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  int listening = socket(AF_INET, SOCK_STREAM, 0);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listening, (struct sockaddr *)&address, size) || listen(listening, 1) ||
      getsockname(listening, (struct sockaddr *)&address, &size) ||
      connect(ends[0], (struct sockaddr *)&address, size))
    exit(2);
  ends[1] = accept(listening, NULL, NULL);
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  long rounds = atol(argv[2]);
  int there[2], back[2];
  if (strcmp(argv[1], "tcp") == 0) {
    int ends[2];
    connect_both(ends);
    there[1] = back[0] = ends[0];
    there[0] = back[1] = ends[1];
  } else if (pipe(there) || pipe(back)) {
    return 2;
  }
  char byte = 1;
  if (fork() == 0) {
    for (long i = 0; i < rounds; i++)
      if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) _exit(1);
    _exit(0);
  }
  for (long i = 0; i < rounds; i++)
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 1;
  int status;
  wait(&status);
  return status;
}

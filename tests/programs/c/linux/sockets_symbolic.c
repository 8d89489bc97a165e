// run:
// paths: 4
// Symbolic bytes keep their expressions on the way through sockets of all kinds and between processes.
#include "sockets.h"

#include <everett.h>

int main(void) {
  unsigned char first = everett_symbolic_u8("first"), second = everett_symbolic_u8("second");
  unsigned char bytes[2] = {first, second};
  int tcp[2], pair[2];
  tcp_pair(tcp);
  socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
  if (fork() == 0) {
    // Hands on what it gets, without looking at it.
    unsigned char buffer[2];
    recv(tcp[1], buffer, 2, MSG_WAITALL);
    send(pair[1], buffer, 2, 0);
    exit(0);
  }
  send(tcp[0], bytes, 2, 0);
  memset(bytes, 0, 2);
  recv(pair[0], bytes, 2, 0);
  int status;
  wait(&status);
  if (bytes[0] != first || bytes[1] != second) return 99;
  if (bytes[0] < 10) return 1;
  if (bytes[0] + bytes[1] == 300) return 2;
  if (bytes[1] == 'x') return 3;
  return 0;
}

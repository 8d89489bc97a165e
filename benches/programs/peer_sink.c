// Counts the bytes of a connection and answers their number: the peer of peer_sender, explored or (by gcc) live.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **words) {
  static char bytes[65536];
  int port = count > 1 ? atoi(words[1]) : 7000, listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(port)};
  if (bind(listener, (struct sockaddr *)&own, sizeof own) || listen(listener, 4)) return 1;
  int peer = accept(listener, 0, 0);
  long total = 0;
  for (ssize_t got; (got = read(peer, bytes, sizeof bytes)) > 0;) total += got;
  char answer[32];
  return write(peer, answer, sprintf(answer, "%ld\n", total)) > 0 ? 0 : 2;
}

// Sends bytes to a peer, and expects their number as an answer: peer_sender BYTES BYTES_A_WRITE
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int count, char **words) {
  static char bytes[65536];
  long total = atol(words[1]), size = atol(words[2]);
  memset(bytes, 'x', sizeof bytes);
  struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(7000)};
  inet_pton(AF_INET, "10.0.0.7", &peer.sin_addr);
  int socket_ = socket(AF_INET, SOCK_STREAM, 0);
  if (count != 3 || connect(socket_, (struct sockaddr *)&peer, sizeof peer)) return 1;
  for (long sent = 0; sent < total; sent += size)
    for (long done = 0; done < size;) {
      ssize_t written = write(socket_, bytes + done, size - done);
      if (written <= 0) return 2;
      done += written;
    }
  shutdown(socket_, SHUT_WR);
  char answer[32] = {0};
  if (read(socket_, answer, sizeof answer - 1) <= 0) return 3;
  return atol(answer) == total ? 0 : 4;
}

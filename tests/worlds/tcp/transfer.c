#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <stdlib.h>
#include <netdb.h>
#include <sys/socket.h>
int main(int argc, char **argv) {
  int s = socket(AF_INET, SOCK_STREAM, 0);
  if (argc > 1) {
    struct addrinfo *found, hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
    int e = getaddrinfo(argv[1], "80", &hints, &found);
    if (e) { printf("no name: %s\n", gai_strerror(e)); return 3; }
    if (connect(s, found->ai_addr, found->ai_addrlen)) { perror("connect"); return 1; }
    long total = atol(argv[2]); char buf[4096]; memset(buf, 'x', sizeof buf);
    long sent = 0; while (sent < total) { long n = write(s, buf, total - sent > 4096 ? 4096 : total - sent); if (n <= 0) { perror("write"); return 1; } sent += n; }
    shutdown(s, SHUT_WR);
    char r[64]; long n, m = 0; while ((n = read(s, r + m, sizeof r - m)) > 0) m += n;
    printf("%.*s\n", (int)m, r);
    return 0;
  }
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(80)};
  if (bind(s, (void *)&a, sizeof a) || listen(s, 2)) return 2;
  for (int i = 0; i < 2; i++) {
    int c = accept(s, 0, 0); char buf[1000]; long n, total = 0;
    while ((n = read(c, buf, sizeof buf)) > 0) total += n;
    dprintf(c, "got %ld", total); close(c);
  }
  puts("done");
  return 0;
}

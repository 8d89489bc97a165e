// exec:
// A server and clients in processes of their own: connecting, talking, closing.
#include "sockets.h"

static void serve(int server) {
  for (int client = 0; client < 3; client++) {
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    int fd = accept(server, (struct sockaddr *)&from, &len);
    printf("accepted from %s, family %d, length %u\n", inet_ntoa(from.sin_addr), from.sin_family, len);
    char buffer[64];
    long got;
    while ((got = read(fd, buffer, sizeof buffer)) > 0) {
      for (long i = 0; i < got; i++)
        if (buffer[i] >= 'a' && buffer[i] <= 'z') buffer[i] -= 32;
      write(fd, buffer, got);
    }
    printf("end of client: %ld\n", got);
    fflush(stdout);
    close(fd);
  }
  exit(7);
}

int main(void) {
  own_network();
  struct sockaddr_in address;
  int server = listener(&address, 4);
  printf("port is %s\n", ntohs(address.sin_port) >= 1024 ? "given" : "none");
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) serve(server);
  close(server);
  for (int client = 0; client < 3; client++) {
    int fd = connect_to(&address);
    struct sockaddr_in name;
    socklen_t len = sizeof name;
    getpeername(fd, (struct sockaddr *)&name, &len);
    int same = name.sin_port == address.sin_port && len == sizeof name;
    char text[32], back[64];
    for (int round = 0; round < 3; round++) {
      int size = snprintf(text, sizeof text, "client %d round %d", client, round);
      write(fd, text, size);
      long got = 0;
      while (got < size) got += read(fd, back + got, sizeof back - got);
      if (strncmp(back, "CLIENT", 6) || back[got - 1] != text[size - 1]) return 1;
    }
    shutdown(fd, SHUT_WR);
    long end = read(fd, back, sizeof back);
    if (!same || end != 0) return 2;
    close(fd);
  }
  int status;
  waitpid(pid, &status, 0);
  printf("server: %d\n", WEXITSTATUS(status));
  tell("connect when nobody listens", connect_to(&address));
  return 0;
}

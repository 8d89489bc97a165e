#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7000)};
  char text[8] = "hello";
  if (argc > 1) {
    inet_pton(AF_INET, argv[1], &address.sin_addr);
    sendto(fd, text, sizeof text, 0, (struct sockaddr *)&address, sizeof address);
    return recv(fd, text, sizeof text, 0) == 2 ? 0 : 1;
  }
  bind(fd, (struct sockaddr *)&address, sizeof address);
  if (daemon(0, 0)) return 1;
  for (;;) {
    socklen_t len = sizeof address;
    if (recvfrom(fd, text, sizeof text, 0, (struct sockaddr *)&address, &len) > 0 && !strcmp(text, "hello"))
      sendto(fd, "ok", 2, 0, (struct sockaddr *)&address, len);
  }
}

// exec:
// A message whose place is not accessible is lost, unless it is peeked at; bytes of a stream stay.
#include "files.h"
#include <arpa/inet.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>


static void between(const char *what, int from, int to) {
  char buffer[100] = "";
  printf("-- %s\n", what);
  char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page + 4096, 4096);
  TRY(send(from, "one", 3, 0));
  TRY(send(from, "two", 3, 0));
  TRY(send(from, "three", 5, 0));
  TRY(recv(to, (void *)8, 10, MSG_DONTWAIT));
  TRY(recv(to, buffer, 10, MSG_DONTWAIT));
  printf("%.3s\n", buffer);
  TRY(recv(to, page + 4094, 10, MSG_DONTWAIT));
  TRY(recv(to, buffer, 10, MSG_DONTWAIT));
  TRY(send(from, "four", 4, 0));
  TRY(send(from, "five", 4, 0));
  struct iovec parts[2] = {{buffer, 2}, {(void *)8, 10}};
  struct msghdr header = {.msg_iov = parts, .msg_iovlen = 2};
  TRY(recvmsg(to, &header, MSG_DONTWAIT));
  TRY(recv(to, buffer, 100, MSG_DONTWAIT));
  TRY(recv(to, buffer, 100, MSG_DONTWAIT));
  struct sockaddr_storage address;
  TRY(send(from, "seven", 5, 0));
  TRY(recvfrom(to, buffer, 10, MSG_DONTWAIT, (void *)&address, (void *)8));
  TRY(recv(to, buffer, 10, MSG_DONTWAIT));
  TRY(send(from, "nine", 4, 0));
  TRY(recv(to, (void *)8, 10, MSG_DONTWAIT | MSG_PEEK));
  TRY(recv(to, buffer, 10, MSG_DONTWAIT));
  TRY(send(from, "ten", 3, 0));
  TRY(read(to, (void *)8, 10));
  TRY(recv(to, buffer, 10, MSG_DONTWAIT));
}

int main(void) {
  int pair[2];
  socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
  between("datagrams", pair[0], pair[1]);
  socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
  between("packets", pair[0], pair[1]);
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  between("stream", pair[0], pair[1]);
  int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  bind(to, (void *)&address, sizeof address);
  getsockname(to, (void *)&address, &length);
  connect(from, (void *)&address, sizeof address);
  between("UDP", from, to);
  return 0;
}

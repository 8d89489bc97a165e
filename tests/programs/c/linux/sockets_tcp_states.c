// exec:
// What each call says in each state of a TCP socket, and what poll says.
#include "sockets.h"

static void fresh(void) {
  puts("-- fresh");
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  signal(SIGPIPE, SIG_IGN);
  char byte;
  tell_events("events", fd);
  tell("recv", recv(fd, &byte, 1, 0));
  tell("send", send(fd, "x", 1, 0));
  tell("write", write(fd, "x", 1));
  tell("accept", accept(fd, NULL, NULL));
  tell("shutdown", shutdown(fd, SHUT_RDWR));
  struct sockaddr_in name;
  socklen_t len = sizeof name;
  tell("getpeername", getpeername(fd, (struct sockaddr *)&name, &len));
  len = sizeof name;
  tell("getsockname", getsockname(fd, (struct sockaddr *)&name, &len));
  printf("family %d port %d address %x length %u\n", name.sin_family, name.sin_port, name.sin_addr.s_addr, len);
  tell("lseek", lseek(fd, 0, SEEK_SET));
  tell("pread", pread(fd, &byte, 1, 0));
  tell("empty read", read(fd, &byte, 0));
  close(fd);
  tell("closed", recv(fd, &byte, 1, 0));
  tell("no socket", recv(0, &byte, 1, 0));
}

static void listening(void) {
  puts("-- listening");
  struct sockaddr_in address;
  int server = listener(&address, 4), other = socket(AF_INET, SOCK_STREAM, 0);
  char byte;
  tell_events("events", server);
  tell("recv", recv(server, &byte, 1, 0));
  tell("send", send(server, "x", 1, MSG_NOSIGNAL));
  tell("connect", connect(server, (struct sockaddr *)&address, sizeof address));
  tell("bind", bind(server, (struct sockaddr *)&address, sizeof address));
  tell("listen again", listen(server, 1));
  nonblocking(server);
  tell("accept", accept(server, NULL, NULL));
  int client = connect_to(&address);
  tell_events("with a connection", server);
  tell("connected listens", listen(client, 1));
  tell("connected connects", connect(client, (struct sockaddr *)&address, sizeof address));
  tell("shutdown for writing", shutdown(server, SHUT_WR));
  tell("shutdown for reading", shutdown(server, SHUT_RD));
  tell_events("after shutdown", server);
  tell("accept after shutdown", accept(server, NULL, NULL));
  tell("client", recv(client, &byte, 1, 0));
  tell("connect after shutdown", connect(other, (struct sockaddr *)&address, sizeof address));
  tell("listen after shutdown", listen(server, 1));
  tell_ok("connect", connect(other, (struct sockaddr *)&address, sizeof address));
  close(server), close(other), close(client);
}

static void connected(void) {
  puts("-- connected");
  int pair[2];
  tcp_pair(pair);
  tell_events("client", pair[0]);
  tell("send", send(pair[0], "hello", 5, 0));
  tell_events("receiver", pair[1]);
  tell_bytes("peek", pair[1], 3, MSG_PEEK);
  tell_bytes("recv", pair[1], 2, 0);
  tell_bytes("rest", pair[1], 100, 0);
  tell_bytes("nothing", pair[1], 100, MSG_DONTWAIT);
  tell("accept", accept(pair[0], NULL, NULL));
  tell("shutdown 9", shutdown(pair[0], 9));
  close(pair[0]), close(pair[1]);
}

static void half_closed(void) {
  puts("-- half closed");
  int pair[2];
  tcp_pair(pair);
  send(pair[0], "last words", 10, 0);
  tell("shutdown", shutdown(pair[0], SHUT_WR));
  tell_events("who said so", pair[0]);
  tell_events("who hears it", pair[1]);
  tell("send", send(pair[0], "x", 1, MSG_NOSIGNAL));
  tell_bytes("recv", pair[1], 100, 0);
  tell_bytes("end", pair[1], 100, 0);
  tell_bytes("end again", pair[1], 100, MSG_DONTWAIT);
  tell("other way", send(pair[1], "answer", 6, 0));
  tell_bytes("other way", pair[0], 100, 0);
  tell("shutdown", shutdown(pair[1], SHUT_WR));
  tell_events("first", pair[0]);
  tell_events("second", pair[1]);
  tell("shutdown once more", shutdown(pair[1], SHUT_WR));
  tell_bytes("end", pair[0], 100, 0);
  close(pair[0]), close(pair[1]);
}

static void shut_for_reading(void) {
  puts("-- shut for reading");
  int pair[2];
  tcp_pair(pair);
  send(pair[1], "before", 6, 0);
  tell("shutdown", shutdown(pair[0], SHUT_RD));
  tell_events("events", pair[0]);
  tell_bytes("before", pair[0], 100, 0);
  tell_bytes("end", pair[0], 100, 0);
  tell("peer sends", send(pair[1], "after", 5, MSG_NOSIGNAL));
  tell_bytes("after", pair[0], 100, 0);
  close(pair[0]), close(pair[1]);
}

int main(void) {
  fresh();
  listening();
  connected();
  half_closed();
  shut_for_reading();
  return 0;
}

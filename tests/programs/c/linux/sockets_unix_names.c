// exec:
// Sockets with SO_PASSCRED get a name when they connect or send, so that they can be answered.
#include "files.h"
#include <sys/socket.h>
#include <sys/un.h>

static int made(int type, int passes) {
  int s = socket(AF_UNIX, type, 0);
  setsockopt(s, SOL_SOCKET, SO_PASSCRED, &passes, sizeof passes);
  return s;
}

static void show_name(const char *what, int s) {
  struct sockaddr_un name;
  socklen_t length = sizeof name;
  memset(&name, 0x55, sizeof name);
  TRY(getsockname(s, (void *)&name, &length));
  int is_number = length == 8 && name.sun_path[0] == 0;
  for (int i = 1; i < (int)length - 2; i++) is_number = is_number && strchr("0123456789abcdef", name.sun_path[i]);
  printf("%s: %d %s\n", what, (int)length, is_number ? "number" : length > 2 ? name.sun_path : "none");
}

static void show_sender(int s) {
  struct sockaddr_un name;
  socklen_t length = sizeof name;
  char byte;
  TRY(recvfrom(s, &byte, 1, MSG_DONTWAIT, (void *)&name, &length));
  printf("from a name of %d\n", (int)length);
}

int main(void) {
  start_in("unix-names");
  struct sockaddr_un here = {AF_UNIX, "here"}, there = {AF_UNIX, "there"};
  int server = made(SOCK_DGRAM, 0), s = made(SOCK_DGRAM, 1);
  bind(server, (void *)&here, sizeof here);
  show_name("new", s);
  TRY(sendto(s, "x", 1, 0, (void *)&here, sizeof here));
  show_name("has sent", s);
  show_sender(server);
  s = made(SOCK_DGRAM, 1);
  TRY(connect(s, (void *)&here, sizeof here));
  show_name("connected", s);
  s = made(SOCK_DGRAM, 0);
  TRY(connect(s, (void *)&here, sizeof here));
  show_name("without", s);
  int on = 1, pair[2];
  setsockopt(s, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  show_name("late", s);
  TRY(send(s, "y", 1, 0));
  show_name("late, has sent", s);
  show_sender(server);
  int listener = made(SOCK_STREAM, 0), client = made(SOCK_STREAM, 1);
  bind(listener, (void *)&there, sizeof there);
  listen(listener, 5);
  TRY(connect(client, (void *)&there, sizeof there));
  show_name("client", client);
  int accepted = accept(listener, NULL, NULL);
  show_name("accepted", accepted);
  struct sockaddr_un peer;
  socklen_t length = sizeof peer;
  TRY(getpeername(accepted, (void *)&peer, &length));
  printf("peer has a name of %d\n", (int)length);
  TRY(listen(made(SOCK_STREAM, 1), 5));
  socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
  setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  TRY(send(pair[0], "q", 1, 0));
  show_name("pair", pair[0]);
  show_sender(pair[1]);
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  TRY(send(pair[0], "q", 1, 0));
  show_name("streams", pair[0]);
  return 0;
}

// exec:
// UNIX sockets: names in the tree and apart from it, streams, packets, datagrams.
#include "sockets.h"

#include <sys/stat.h>

static socklen_t named(struct sockaddr_un *address, const char *name) {
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  size_t len = strlen(name);
  memcpy(address->sun_path, name, len);
  if (name[0] == '@') {
    address->sun_path[0] = 0;
    return offsetof(struct sockaddr_un, sun_path) + len;
  }
  return offsetof(struct sockaddr_un, sun_path) + len + 1;
}

static void tell_name(const char *what, int fd, int peer) {
  struct sockaddr_un name;
  memset(&name, 0, sizeof name);
  socklen_t len = sizeof name;
  int result = peer ? getpeername(fd, (struct sockaddr *)&name, &len) : getsockname(fd, (struct sockaddr *)&name, &len);
  if (result < 0) {
    printf("%s: %s\n", what, error_name(errno));
    return;
  }
  const char *text = name.sun_path[0] ? name.sun_path : name.sun_path + 1;
  printf("%s: %d length %u \"%s\"\n", what, name.sun_family, len, len > 2 ? text : "");
}

static int bound(int type, const char *name) {
  struct sockaddr_un address;
  socklen_t len = named(&address, name);
  int fd = socket(AF_UNIX, type, 0);
  if (bind(fd, (struct sockaddr *)&address, len) < 0) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

static int connect_name(int fd, const char *name) {
  struct sockaddr_un address;
  socklen_t len = named(&address, name);
  return connect(fd, (struct sockaddr *)&address, len);
}

static void names(void) {
  puts("-- names");
  unlink("sock.tmp");
  int fd = bound(SOCK_STREAM, "sock.tmp");
  tell_ok("bind", fd);
  tell_name("own name", fd, 0);
  struct stat status;
  tell("stat", stat("sock.tmp", &status));
  printf("socket %d, size %ld, links %d\n", S_ISSOCK(status.st_mode), (long)status.st_size, (int)status.st_nlink);
  fstat(fd, &status);
  printf("socket %d\n", S_ISSOCK(status.st_mode));
  tell("open", open("sock.tmp", O_RDWR));
  tell("taken", bound(SOCK_STREAM, "sock.tmp"));
  tell("no directory", bound(SOCK_STREAM, "nowhere/sock.tmp"));
  tell("not listening", connect_name(socket(AF_UNIX, SOCK_STREAM, 0), "sock.tmp"));
  tell("nothing there", connect_name(socket(AF_UNIX, SOCK_STREAM, 0), "nothing.tmp"));
  tell("wrong type", connect_name(socket(AF_UNIX, SOCK_DGRAM, 0), "sock.tmp"));
  close(creat("file.tmp", 0644));
  tell("a file", connect_name(socket(AF_UNIX, SOCK_STREAM, 0), "file.tmp"));
  unlink("file.tmp");
  close(fd);
  tell("closed", connect_name(socket(AF_UNIX, SOCK_STREAM, 0), "sock.tmp"));
  tell("still taken", bound(SOCK_STREAM, "sock.tmp"));
  tell("unlink", unlink("sock.tmp"));
  fd = bound(SOCK_STREAM, "@everett-test");
  tell_ok("abstract", fd);
  tell_name("own name", fd, 0);
  tell("taken", bound(SOCK_DGRAM, "@everett-test") >= 0 ? 0 : -1);
  close(fd);
  fd = bound(SOCK_STREAM, "@everett-test");
  tell_ok("free again", fd);
  tell("bind again", connect_name(fd, "@nothing-here"));
  struct sockaddr_un address;
  socklen_t len = named(&address, "other.tmp");
  tell("bind again", bind(fd, (struct sockaddr *)&address, len));
  unlink("other.tmp");
  close(fd);
  fd = socket(AF_UNIX, SOCK_STREAM, 0);
  tell_name("no name", fd, 0);
  tell("listen without", listen(fd, 1));
  tell("autobind", bind(fd, (struct sockaddr *)&address, sizeof(sa_family_t)));
  len = sizeof address;
  getsockname(fd, (struct sockaddr *)&address, &len);
  printf("given name: length %u, abstract %d\n", len, address.sun_path[0] == 0);
  char room[128] = {AF_UNIX, 0, 'x'};
  tell("too long", bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)room, 120));
  tell("too short", bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, 1));
  tell("protocol", socket(AF_UNIX, SOCK_STREAM, 5));
  close(fd);
}

static void streams(int type) {
  printf("-- %s\n", type == SOCK_STREAM ? "stream" : "packets");
  int server = bound(type, "@everett-server");
  tell("listen", listen(server, 1));
  tell_events("server", server);
  int client = bound(type, "@everett-client");
  tell_events("client", client);
  char byte;
  tell("recv before", recv(client, &byte, 1, 0));
  tell("send before", send(client, "x", 1, MSG_NOSIGNAL));
  tell("connect", connect_name(client, "@everett-server"));
  tell("connect again", connect_name(client, "@everett-server"));
  tell_events("server", server);
  send(client, "early", 5, 0);
  struct sockaddr_un name;
  memset(&name, 0, sizeof name);
  socklen_t len = sizeof name;
  int fd = accept(server, (struct sockaddr *)&name, &len);
  printf("accepted \"%s\" length %u\n", name.sun_path + 1, len);
  tell_name("own name", fd, 0);
  tell_name("peer of client", client, 1);
  tell_bytes("early", fd, 3, 0);
  tell_bytes("rest", fd, 10, MSG_DONTWAIT);
  send(fd, "one", 3, 0), send(fd, "two", 3, 0);
  int bytes = 0;
  ioctl(client, FIONREAD, &bytes);
  printf("bytes %d\n", bytes);
  tell_bytes("recv", client, 100, 0);
  tell_bytes("recv", client, 100, MSG_DONTWAIT);
  tell_events("client", client);
  for (int i = 0; i < 3; i++) {
    int more = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
    tell("backlog", connect_name(more, "@everett-server"));
  }
  tell("shutdown", shutdown(client, SHUT_WR));
  tell_events("peer", fd);
  tell_bytes("end", fd, 10, 0);
  tell("send", send(client, "x", 1, MSG_NOSIGNAL));
  tell("other way", send(fd, "still", 5, MSG_NOSIGNAL));
  close(fd);
  tell_events("peer closed", client);
  tell_bytes("still", client, 10, 0);
  tell_bytes("end", client, 10, 0);
  tell("send", send(client, "x", 1, MSG_NOSIGNAL));
  close(client), close(server);
}

static void pairs(void) {
  puts("-- pairs");
  int pair[2];
  tell("pair", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
  tell_name("own name", pair[0], 0);
  tell_name("peer", pair[0], 1);
  tell_events("events", pair[0]);
  send(pair[0], "unread", 6, 0);
  send(pair[1], "answer", 6, 0);
  close(pair[1]);
  tell_events("peer closed", pair[0]);
  tell_bytes("answer", pair[0], 10, 0);
  tell_bytes("reset", pair[0], 10, 0);
  tell_bytes("end", pair[0], 10, 0);
  tell("send", send(pair[0], "x", 1, MSG_NOSIGNAL));
  close(pair[0]);
  socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair);
  printf("flags %x %x\n", fcntl(pair[0], F_GETFD), fcntl(pair[1], F_GETFL));
  tell_bytes("nothing", pair[0], 10, 0);
  close(pair[1]);
  tell_bytes("end", pair[0], 10, 0);
  close(pair[0]);
  socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
  send(pair[0], "first", 5, 0), send(pair[0], "second", 6, 0);
  tell_bytes("cut", pair[1], 2, 0);
  tell_bytes("next", pair[1], 100, 0);
  char text[10];
  struct iovec part = {text, 10};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  send(pair[0], "third", 5, MSG_EOR);
  tell("recvmsg", recvmsg(pair[1], &message, 0));
  printf("flags %x\n", message.msg_flags);
  // Credentials of what is sent, and none at the end.
  int on = 1;
  setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  send(pair[0], "fourth", 6, 0);
  shutdown(pair[0], SHUT_WR);
  for (int i = 0; i < 2; i++) {
    message.msg_controllen = 0;
    tell("recvmsg", recvmsg(pair[1], &message, 0));
    printf("flags %x\n", (unsigned)message.msg_flags);
  }
  close(pair[0]);
  tell_bytes("end", pair[1], 10, 0);
  tell("send", send(pair[1], "x", 1, MSG_NOSIGNAL));
  close(pair[1]);
}

static void datagrams(void) {
  puts("-- datagrams");
  int one = bound(SOCK_DGRAM, "@everett-one"), two = bound(SOCK_DGRAM, "@everett-two");
  int plain = socket(AF_UNIX, SOCK_DGRAM, 0);
  struct sockaddr_un address, from;
  socklen_t len = named(&address, "@everett-one");
  tell("sendto", sendto(two, "hello", 5, 0, (struct sockaddr *)&address, len));
  tell("sendto", sendto(plain, "", 0, 0, (struct sockaddr *)&address, len));
  socklen_t from_len = sizeof from;
  memset(&from, 0, sizeof from);
  char buffer[16];
  tell("recvfrom", recvfrom(one, buffer, 16, 0, (struct sockaddr *)&from, &from_len));
  printf("from \"%s\" length %u\n", from.sun_path + 1, from_len);
  from_len = sizeof from;
  tell("recvfrom", recvfrom(one, buffer, 16, 0, (struct sockaddr *)&from, &from_len));
  printf("length %u\n", from_len);
  tell("send without", send(plain, "x", 1, 0));
  tell("connect", connect_name(plain, "@everett-one"));
  tell("send", send(plain, "x", 1, 0));
  tell_bytes("recv", one, 10, 0);
  tell("connect", connect_name(one, "@everett-two"));
  tell("not to who talks with another", send(plain, "x", 1, 0));
  tell("nor connect", connect_name(plain, "@everett-one"));
  tell_events("events", plain);
  int count = 0;
  nonblocking(one);
  while (send(one, "x", 1, 0) == 1 && count < 1000) count++;
  printf("queue full: %s after %d\n", error_name(errno), count);
  printf("out %d\n", events_of(one, POLLOUT));
  recv(two, buffer, 1, 0);
  printf("out %d\n", events_of(one, POLLOUT));
  tell("room again", send(one, "x", 1, 0));
  close(two);
  tell("peer gone", send(one, "x", 1, 0));
  tell("then", send(one, "x", 1, 0));
  static char large[300000];
  int pair[2];
  socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
  tell("too large", send(pair[0], large, sizeof large, 0));
  tell("large", send(pair[0], large, 100000, 0));
  tell("large", recv(pair[1], large, sizeof large, 0));
  tell("shutdown", shutdown(pair[0], SHUT_WR));
  tell("send", send(pair[0], "x", 1, MSG_NOSIGNAL));
  tell("shutdown", shutdown(pair[1], SHUT_RD));
  tell_bytes("recv", pair[1], 10, 0);
  close(pair[1]);
  tell("after the peer has gone, too", send(pair[0], "x", 1, MSG_NOSIGNAL));
  tell("even too large", send(pair[0], large, sizeof large, MSG_NOSIGNAL));
  close(one), close(plain), close(pair[0]);
}

int main(void) {
  own_network();
  signal(SIGPIPE, SIG_IGN);
  names();
  streams(SOCK_STREAM);
  streams(SOCK_SEQPACKET);
  pairs();
  datagrams();
  return 0;
}

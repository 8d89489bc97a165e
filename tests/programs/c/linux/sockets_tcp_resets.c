// exec:
// Closing: ends, resets, broken pipes and their signals.
#include "sockets.h"

static volatile sig_atomic_t signals;
static void count(int signal) { (void)signal, signals++; }

static void closed_peer(void) {
  puts("-- closed peer");
  int pair[2];
  tcp_pair(pair);
  close(pair[1]);
  tell_events("events", pair[0]);
  tell_bytes("end", pair[0], 10, 0);
  tell("first send", send(pair[0], "x", 1, 0));
  tell_events("after first send", pair[0]);
  tell("second send", send(pair[0], "x", 1, 0));
  printf("signals %d\n", (int)signals);
  tell("third send", send(pair[0], "x", 1, MSG_NOSIGNAL));
  tell("write", write(pair[0], "x", 1));
  printf("signals %d\n", (int)signals);
  tell_bytes("end", pair[0], 10, 0);
  printf("error %s\n", error_name(socket_error(pair[0])));
  close(pair[0]);
}

static void unread(void) {
  puts("-- closed with unread bytes");
  int pair[2];
  tcp_pair(pair);
  send(pair[0], "unread", 6, 0);
  send(pair[1], "answer", 6, 0);
  close(pair[1]);
  tell_events("events", pair[0]);
  tell_bytes("what came before", pair[0], 10, 0);
  tell_bytes("reset", pair[0], 10, 0);
  tell_bytes("then", pair[0], 10, 0);
  tell("send", send(pair[0], "x", 1, MSG_NOSIGNAL));
  struct sockaddr_in name;
  socklen_t len = sizeof name;
  tell("getpeername", getpeername(pair[0], (struct sockaddr *)&name, &len));
  close(pair[0]);
  tcp_pair(pair);
  send(pair[0], "unread", 6, 0);
  close(pair[1]);
  printf("error %s\n", error_name(socket_error(pair[0])));
  printf("error %s\n", error_name(socket_error(pair[0])));
  tell("send", send(pair[0], "x", 1, MSG_NOSIGNAL));
  close(pair[0]);
  tcp_pair(pair);
  send(pair[0], "unread", 6, 0);
  close(pair[1]);
  tell("send gets it", send(pair[0], "x", 1, MSG_NOSIGNAL));
  tell("once", send(pair[0], "x", 1, MSG_NOSIGNAL));
  tell_bytes("recv", pair[0], 10, 0);
  close(pair[0]);
}

static void lingering(void) {
  puts("-- no lingering");
  int pair[2];
  tcp_pair(pair);
  struct linger linger = {1, 0};
  tell("option", setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
  send(pair[1], "gone?", 5, 0);
  close(pair[1]);
  tell_events("events", pair[0]);
  tell_bytes("recv", pair[0], 10, 0);
  tell_bytes("recv", pair[0], 10, 0);
  close(pair[0]);
  tcp_pair(pair);
  linger.l_linger = 2;
  setsockopt(pair[1], SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  send(pair[1], "kept", 4, 0);
  close(pair[1]);
  tell_bytes("recv", pair[0], 10, 0);
  tell_bytes("recv", pair[0], 10, 0);
  close(pair[0]);
}

static void listener_gone(void) {
  puts("-- listener gone before accept");
  struct sockaddr_in address;
  int server = listener(&address, 4);
  int client = connect_to(&address);
  tell("send", send(client, "x", 1, 0));
  close(server);
  tell_events("events", client);
  tell_bytes("recv", client, 10, 0);
  close(client);
}

static void client_gone(void) {
  puts("-- client gone before accept");
  struct sockaddr_in address;
  int server = listener(&address, 4);
  int client = connect_to(&address);
  send(client, "note", 4, 0);
  close(client);
  int fd = accept(server, NULL, NULL);
  tell_ok("accept", fd);
  tell_bytes("recv", fd, 10, 0);
  tell_bytes("recv", fd, 10, 0);
  close(fd);
  client = connect_to(&address);
  struct linger linger = {1, 0};
  setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
  close(client);
  fd = accept(server, NULL, NULL);
  tell_ok("accept of a broken one", fd);
  tell_bytes("recv", fd, 10, 0);
  close(fd), close(server);
}

static void shared(void) {
  puts("-- a copy keeps it open");
  int pair[2];
  tcp_pair(pair);
  int copy = dup(pair[1]);
  close(pair[1]);
  tell("send", send(pair[0], "to copy", 7, 0));
  tell_bytes("recv", copy, 10, 0);
  pid_t pid = fork();
  if (pid == 0) {
    send(copy, "from child", 10, 0);
    exit(0);
  }
  waitpid(pid, NULL, 0);
  tell_bytes("recv", pair[0], 20, 0);
  tell_bytes("still open", pair[0], 20, MSG_DONTWAIT);
  close(copy);
  tell_bytes("end", pair[0], 20, MSG_DONTWAIT);
  close(pair[0]);
}

int main(void) {
  signal(SIGPIPE, count);
  closed_peer();
  unread();
  lingering();
  listener_gone();
  client_gone();
  shared();
  fflush(stdout);
  signal(SIGPIPE, SIG_DFL);
  pid_t pid = fork();
  if (pid == 0) {
    int pair[2];
    tcp_pair(pair);
    shutdown(pair[0], SHUT_WR);
    write(pair[0], "x", 1);
    exit(3);
  }
  int status;
  waitpid(pid, &status, 0);
  printf("killed by SIGPIPE: %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
  return 0;
}

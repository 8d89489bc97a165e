// exec:
// Sockets shared by processes: several that accept, select, vectors, inherited descriptors.
#include "sockets.h"

#include <sys/select.h>

static void several_accept(void) {
  puts("-- several processes accept");
  struct sockaddr_in address;
  int server = listener(&address, 8);
  fflush(stdout);
  for (int i = 0; i < 3; i++) {
    if (fork() == 0) {
      int fd = accept(server, NULL, NULL);
      char byte;
      recv(fd, &byte, 1, 0);
      byte++;
      send(fd, &byte, 1, 0);
      exit(0);
    }
  }
  int sum = 0;
  for (int i = 0; i < 3; i++) {
    int fd = connect_to(&address);
    char byte = 'a' + i;
    send(fd, &byte, 1, 0);
    recv(fd, &byte, 1, 0);
    sum += byte;
    close(fd);
  }
  for (int i = 0; i < 3; i++) wait(NULL);
  printf("sum %d\n", sum);
  close(server);
}

static void selecting(void) {
  puts("-- select");
  int one[2], two[2];
  tcp_pair(one);
  socketpair(AF_UNIX, SOCK_STREAM, 0, two);
  fd_set read_set, write_set;
  FD_ZERO(&read_set);
  FD_ZERO(&write_set);
  FD_SET(one[0], &read_set);
  FD_SET(two[0], &read_set);
  FD_SET(one[0], &write_set);
  struct timeval no_time = {0, 0};
  int highest = (one[0] > two[0] ? one[0] : two[0]) + 1;
  tell("select", select(highest, &read_set, &write_set, NULL, &no_time));
  printf("%d %d %d\n", !!FD_ISSET(one[0], &read_set), !!FD_ISSET(two[0], &read_set), !!FD_ISSET(one[0], &write_set));
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    usleep(20000);
    send(two[1], "x", 1, 0);
    exit(0);
  }
  FD_ZERO(&read_set);
  FD_SET(one[0], &read_set);
  FD_SET(two[0], &read_set);
  tell("select", select(highest, &read_set, NULL, NULL, NULL));
  printf("%d %d\n", !!FD_ISSET(one[0], &read_set), !!FD_ISSET(two[0], &read_set));
  waitpid(pid, NULL, 0);
  close(one[0]), close(one[1]), close(two[0]), close(two[1]);
}

static void vectors(void) {
  puts("-- vectors");
  int pair[2];
  tcp_pair(pair);
  struct iovec out[3] = {{"one ", 4}, {"", 0}, {"two", 3}};
  tell("writev", writev(pair[0], out, 3));
  char a[3] = "", b[10] = "";
  struct iovec in[2] = {{a, 2}, {b, 9}};
  tell("readv", readv(pair[1], in, 2));
  printf("%s|%s\n", a, b);
  struct msghdr message = {.msg_iov = out, .msg_iovlen = 3};
  tell("sendmsg", sendmsg(pair[0], &message, 0));
  struct sockaddr_in name;
  memset(a, 0, sizeof a), memset(b, 0, sizeof b);
  struct msghdr back = {.msg_iov = in, .msg_iovlen = 2, .msg_name = &name, .msg_namelen = sizeof name};
  tell("recvmsg", recvmsg(pair[1], &back, 0));
  printf("%s|%s name length %u flags %x\n", a, b, back.msg_namelen, back.msg_flags);
  message.msg_iovlen = 2000;
  tell("too many", sendmsg(pair[0], &message, 0));
  send(pair[0], "dropped", 7, 0);
  tell("dropped", recv(pair[1], NULL, 4, MSG_TRUNC));
  tell_bytes("rest", pair[1], 10, 0);
  socklen_t len = sizeof name;
  send(pair[0], "x", 1, 0);
  tell("recvfrom", recvfrom(pair[1], a, 1, 0, (struct sockaddr *)&name, &len));
  printf("length %u\n", len);
  tell("sendto a stranger", sendto(pair[0], "y", 1, 0, (struct sockaddr *)&name, sizeof name));
  tell_bytes("goes to the peer", pair[1], 10, 0);
  close(pair[0]), close(pair[1]);
}

static void disconnecting(void) {
  puts("-- disconnecting");
  int pair[2];
  tcp_pair(pair);
  struct sockaddr none = {.sa_family = AF_UNSPEC};
  tell("connect to none", connect(pair[0], &none, sizeof none));
  tell_bytes("peer", pair[1], 10, 0);
  tell_bytes("self", pair[0], 10, 0);
  tell_events("self", pair[0]);
  struct sockaddr_in address;
  int server = listener(&address, 4);
  tell("connect anew", connect(pair[0], (struct sockaddr *)&address, sizeof address));
  close(server), close(pair[0]), close(pair[1]);
}

int main(void) {
  several_accept();
  selecting();
  vectors();
  disconnecting();
  return 0;
}

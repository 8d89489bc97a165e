// exec:
// A server with one thread and epoll: many clients, level and edge.
#include "sockets.h"

#include <sys/epoll.h>

enum { CLIENTS = 5 };

static void client(const struct sockaddr_in *address, int number) {
  int fd = connect_to(address);
  char text[32], back[32];
  for (int round = 0; round < 4; round++) {
    int size = snprintf(text, sizeof text, "%d:%d", number, round);
    send(fd, text, size, 0);
    long got = recv(fd, back, sizeof back, 0);
    if (got != size || memcmp(text, back, size)) exit(1);
  }
  close(fd);
  exit(0);
}

static void serve(int edge) {
  printf("-- %s\n", edge ? "edge" : "level");
  struct sockaddr_in address;
  int server = listener(&address, 8), ended = 0, messages = 0;
  nonblocking(server);
  fflush(stdout);
  for (int i = 0; i < CLIENTS; i++)
    if (fork() == 0) client(&address, i);
  int set = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = server};
  epoll_ctl(set, EPOLL_CTL_ADD, server, &event);
  while (ended < CLIENTS) {
    struct epoll_event events[4];
    int count = epoll_wait(set, events, 4, -1);
    for (int i = 0; i < count; i++) {
      int fd = events[i].data.fd;
      if (fd == server) {
        int accepted;
        while ((accepted = accept4(server, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
          event.events = EPOLLIN | EPOLLRDHUP | (edge ? EPOLLET : 0);
          event.data.fd = accepted;
          epoll_ctl(set, EPOLL_CTL_ADD, accepted, &event);
        }
        continue;
      }
      char buffer[64];
      long got;
      while ((got = recv(fd, buffer, sizeof buffer, 0)) > 0) messages++, send(fd, buffer, got, 0);
      if (got == 0) ended++, close(fd);
    }
  }
  int status, good = 0;
  for (int i = 0; i < CLIENTS; i++) wait(&status), good += status == 0;
  printf("messages %d, good clients %d\n", messages, good);
  close(set), close(server);
}

static void tell_waiting(const char *what, int set) {
  struct epoll_event events[4];
  int count = epoll_wait(set, events, 4, 0);
  printf("%s:", what);
  for (int i = 0; i < count; i++) printf(" %x", events[i].events);
  puts("");
}

static void edges(void) {
  puts("-- edges of one socket");
  int pair[2], set = epoll_create1(0);
  tcp_pair(pair);
  struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};
  epoll_ctl(set, EPOLL_CTL_ADD, pair[0], &event);
  tell_waiting("at first", set);
  tell_waiting("nothing new", set);
  send(pair[1], "a", 1, 0);
  tell_waiting("a byte", set);
  tell_waiting("nothing new", set);
  send(pair[1], "b", 1, 0);
  tell_waiting("another", set);
  char buffer[4];
  recv(pair[0], buffer, 1, 0);
  tell_waiting("after reading one", set);
  recv(pair[0], buffer, 1, 0);
  send(pair[0], "x", 1, 0);
  tell_waiting("after sending", set);
  recv(pair[1], buffer, 1, 0);
  tell_waiting("after the peer has read", set);
  shutdown(pair[1], SHUT_WR);
  tell_waiting("the peer ends", set);
  tell_waiting("nothing new", set);
  close(pair[1]);
  tell_waiting("the peer closes", set);
  send(pair[0], "x", 1, 0);
  tell_waiting("reset", set);
  close(pair[0]);
  tell_waiting("closed", set);
  int udp[2];
  socketpair(AF_UNIX, SOCK_DGRAM, 0, udp);
  event.events = EPOLLIN | EPOLLET;
  epoll_ctl(set, EPOLL_CTL_ADD, udp[0], &event);
  send(udp[1], "1", 1, 0), send(udp[1], "2", 1, 0);
  tell_waiting("two datagrams", set);
  recv(udp[0], buffer, 4, 0);
  tell_waiting("one read", set);
  close(udp[0]), close(udp[1]);
  nonblocking(set);
  int connecting = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  struct sockaddr_in address;
  int server = listener(&address, 1);
  event.events = EPOLLIN | EPOLLOUT | EPOLLET;
  epoll_ctl(set, EPOLL_CTL_ADD, connecting, &event);
  tell_waiting("before connect", set);
  connect(connecting, (struct sockaddr *)&address, sizeof address);
  tell_waiting("after connect", set);
  tell_waiting("nothing new", set);
  close(connecting), close(server), close(set);
}

int main(void) {
  serve(0);
  serve(1);
  edges();
  return 0;
}

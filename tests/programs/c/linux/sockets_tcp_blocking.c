// exec:
// Waiting: full buffers, whole messages, timeouts, signals, threads of both ends.
#include "asleep.h"
#include "sockets.h"

static volatile sig_atomic_t signals;
static void count(int signal) { (void)signal, signals++; }

static void writers_wait(void) {
  puts("-- writers wait");
  int pair[2];
  tcp_pair(pair);
  enum { SIZE = 12 << 20 };
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    close(pair[0]);
    static unsigned char buffer[65536];
    unsigned long sum = 0, total = 0;
    long got;
    while ((got = read(pair[1], buffer, sizeof buffer)) > 0) {
      for (long i = 0; i < got; i++) sum = (total + i) % 4096 ? sum : sum * 31 + buffer[i];
      total += got;
    }
    printf("received %lu, sum %lx\n", total, sum);
    fflush(stdout);
    exit(0);
  }
  close(pair[1]);
  unsigned char *bytes = malloc(SIZE);
  memset(bytes, 7, SIZE);
  for (int i = 0; i < SIZE; i += 4096) bytes[i] = i >> 12;
  tell("write", write(pair[0], bytes, SIZE));
  close(pair[0]);
  waitpid(pid, NULL, 0);
  free(bytes);
}

static void nonblocking_fills(void) {
  puts("-- fills without waiting");
  int pair[2];
  tcp_pair(pair);
  nonblocking(pair[0]);
  static char buffer[65536];
  long total = 0, sent;
  while ((sent = send(pair[0], buffer, sizeof buffer, 0)) > 0) total += sent;
  printf("full: %s, over 64 KiB: %d\n", error_name(errno), total > 65536);
  printf("out %d\n", events_of(pair[0], POLLOUT));
  long got = 0, more;
  while (got < total && (more = recv(pair[1], buffer, sizeof buffer, 0)) > 0) got += more;
  printf("all there: %d\n", got == total);
  poll(&(struct pollfd){pair[0], POLLOUT, 0}, 1, -1);
  printf("out %d\n", events_of(pair[0], POLLOUT));
  close(pair[0]), close(pair[1]);
}

static void all_at_once(void) {
  puts("-- all at once");
  int pair[2];
  tcp_pair(pair);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    for (int i = 0; i < 5; i++) {
      send(pair[0], "piece", 5, 0);
      usleep(10000);
    }
    exit(0);
  }
  tell_bytes("all", pair[1], 25, MSG_WAITALL);
  waitpid(pid, NULL, 0);
  send(pair[0], "rest", 4, 0);
  shutdown(pair[0], SHUT_WR);
  tell_bytes("until the end", pair[1], 25, MSG_WAITALL);
  close(pair[0]), close(pair[1]);
  // A call that does not wait returns what there is.
  for (int kind = 0; kind < 2; kind++) {
    if (kind == 0) tcp_pair(pair);
    else socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    tell_bytes("nothing there", pair[1], 25, MSG_WAITALL | MSG_DONTWAIT);
    send(pair[0], "some", 4, 0);
    events_of(pair[1], POLLIN);
    tell_bytes("what there is", pair[1], 25, MSG_WAITALL | MSG_DONTWAIT);
    nonblocking(pair[1]);
    send(pair[0], "more", 4, 0);
    events_of(pair[1], POLLIN);
    tell_bytes("what there is", pair[1], 25, MSG_WAITALL);
    tell_bytes("nothing is left", pair[1], 25, MSG_WAITALL);
    close(pair[0]), close(pair[1]);
  }
}

static void timeouts(void) {
  puts("-- timeouts");
  int pair[2];
  tcp_pair(pair);
  struct timeval limit = {0, 60000}, told;
  tell("option", setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
  setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  socklen_t len = sizeof told;
  getsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &told, &len);
  printf("told %ld.%06ld, %u\n", (long)told.tv_sec, (long)told.tv_usec, len);
  tell_bytes("nothing in time", pair[0], 10, 0);
  static char buffer[1 << 20];
  long total = 0, sent;
  while ((sent = send(pair[0], buffer, sizeof buffer, 0)) > 0) total += sent;
  tell("no room in time", sent);
  printf("sent some: %d\n", total > 0);
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address;
  int server = listener(&address, 1);
  setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  tell("nobody in time", accept(server, NULL, NULL));
  limit.tv_usec = 1000000;
  tell("bad time", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
  tell("short time", setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, 8));
  close(fd), close(server), close(pair[0]), close(pair[1]);
}

// Another process sends a signal once this one waits.
static pid_t signal_later(void) {
  pid_t parent = getpid();
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    until_asleep(parent);
    kill(parent, SIGALRM);
    exit(0);
  }
  return pid;
}

static void interrupted(void) {
  puts("-- signals");
  int pair[2];
  tcp_pair(pair);
  struct sigaction action = {.sa_handler = count};
  sigaction(SIGALRM, &action, NULL);
  pid_t sender = signal_later();
  tell_bytes("recv", pair[0], 10, 0);
  waitpid(sender, NULL, 0);
  struct sockaddr_in address;
  int server = listener(&address, 1);
  sender = signal_later();
  tell("accept", accept(server, NULL, NULL));
  waitpid(sender, NULL, 0);
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    usleep(60000);
    send(pair[1], "late", 4, 0);
    exit(0);
  }
  sender = signal_later();
  tell_bytes("recv goes on", pair[0], 10, 0);
  waitpid(sender, NULL, 0);
  printf("signals %d\n", (int)signals);
  waitpid(pid, NULL, 0);
}

static void blocking_connect(void) {
  puts("-- connect waits for room");
  struct sockaddr_in address;
  int server = listener(&address, 0);
  int first = connect_to(&address);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    int fd = connect_to(&address);
    char byte = 0;
    read(fd, &byte, 1);
    exit(byte);
  }
  usleep(100000);
  int one = accept(server, NULL, NULL), two = accept(server, NULL, NULL);
  write(two, "w", 1);
  int status;
  waitpid(pid, &status, 0);
  printf("child got %c\n", WEXITSTATUS(status));
  close(first), close(one), close(two), close(server);
}

int main(void) {
  writers_wait();
  nonblocking_fills();
  all_at_once();
  timeouts();
  interrupted();
  blocking_connect();
  return 0;
}

// exec:
// Connections in /proc/net/tcp, up to TIME_WAIT, whose sockets are gone.
#include "files.h"
#include <arpa/inet.h>
#include <sys/socket.h>

#include "own_network.h"

static int port;

// The rows with one of our ports, in an order that does not depend on the kernel. Waits as long as one of them is in
// a state that only the peer's acknowledgement ends: it may take its time.
static void show(const char *when, int family) {
again:;
  FILE *file = fopen(family == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6", "r");
  char line[512], rows[16][256];
  int count = 0;
  while (fgets(line, sizeof line, file) && count < 16) {
    unsigned number, local, remote, state, sent, received, timer, left, again, user, probes;
    unsigned long inode;
    char one[40], other[40];
    int fields = sscanf(line, "%u: %32[0-9A-F]:%X %32[0-9A-F]:%X %X %X:%X %X:%X %X %u %u %lu", &number, one, &local,
                        other, &remote, &state, &sent, &received, &timer, &left, &again, &user, &probes, &inode);
    if (fields != 14 || (local != (unsigned)port && remote != (unsigned)port)) continue;
    // SYN_SENT, SYN_RECV, FIN_WAIT1, LAST_ACK, CLOSING.
    if (state == 2 || state == 3 || state == 4 || state == 9 || state == 11) {
      fclose(file);
      usleep(10000);
      goto again;
    }
    // Timers of connections that are open depend on the machine.
    int is_closed = state == 6 || (state == 5 && inode == 0);
    snprintf(rows[count++], sizeof rows[0], "  %s:%s %s:%s state %02X queues %u %u timer %d inode %d user %u length %d",
             one, local == (unsigned)port ? "server" : "client", other, remote == (unsigned)port ? "server" : "client",
             state, sent, received, is_closed ? (int)timer + (left > 0 && left <= 6000 ? 100 : 0) : -1, inode != 0, user,
             family == AF_INET ? (int)strlen(line) : 0);
  }
  fclose(file);
  printf("%s: %d rows\n", when, count);
  char *sorted[16];
  for (int at = 0; at < count; at++) sorted[at] = rows[at];
  qsort(sorted, count, sizeof *sorted, by_name);
  for (int at = 0; at < count; at++) puts(sorted[at]);
}

static void connection(int family, int order) {
  struct sockaddr_in6 six = {.sin6_family = AF_INET6};
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  six.sin6_addr = in6addr_loopback;
  struct sockaddr *address = family == AF_INET ? (void *)&four : (void *)&six;
  socklen_t size = family == AF_INET ? sizeof four : sizeof six;
  int server = socket(family, SOCK_STREAM, 0), client = socket(family, SOCK_STREAM, 0);
  TRY(bind(server, address, size));
  TRY(listen(server, 4));
  TRY(getsockname(server, address, &size));
  port = ntohs(four.sin_port ? four.sin_port : six.sin6_port);
  show("listening", family);
  TRY(connect(client, address, size));
  show("not accepted", family);
  int accepted = accept(server, NULL, NULL);
  show("accepted", family);
  close(server);
  int ends[2] = {client, accepted};
  if (order == 2) {
    TRY(shutdown(client, SHUT_WR));
    show("half closed", family);
  }
  TRY(close(ends[order == 1]));
  show("one end closed", family);
  TRY(close(ends[order != 1]));
  show("both closed", family);
}

int main(void) {
  own_network();
  for (int order = 0; order < 3; order++) connection(AF_INET, order);
  connection(AF_INET6, 0);
  return 0;
}

// What the socket programs share: telling results with the names of errors and events.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "own_network.h"

static inline const char *error_name(int error) {
  static const struct { int number; const char *name; } names[] = {
      {EPERM, "EPERM"}, {ENOENT, "ENOENT"}, {EINTR, "EINTR"}, {EBADF, "EBADF"}, {EAGAIN, "EAGAIN"},
      {EACCES, "EACCES"}, {EFAULT, "EFAULT"}, {EEXIST, "EEXIST"}, {ENODEV, "ENODEV"}, {ENOTDIR, "ENOTDIR"},
      {EINVAL, "EINVAL"}, {EMFILE, "EMFILE"}, {ENOTTY, "ENOTTY"}, {EPIPE, "EPIPE"}, {ENXIO, "ENXIO"},
      {ENOTSOCK, "ENOTSOCK"}, {EDESTADDRREQ, "EDESTADDRREQ"}, {EMSGSIZE, "EMSGSIZE"}, {EPROTOTYPE, "EPROTOTYPE"},
      {ENOPROTOOPT, "ENOPROTOOPT"}, {EPROTONOSUPPORT, "EPROTONOSUPPORT"}, {ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"},
      {EOPNOTSUPP, "EOPNOTSUPP"}, {EAFNOSUPPORT, "EAFNOSUPPORT"}, {EADDRINUSE, "EADDRINUSE"},
      {EADDRNOTAVAIL, "EADDRNOTAVAIL"}, {ENETUNREACH, "ENETUNREACH"}, {ECONNABORTED, "ECONNABORTED"},
      {ECONNRESET, "ECONNRESET"}, {ENOBUFS, "ENOBUFS"}, {EISCONN, "EISCONN"}, {ENOTCONN, "ENOTCONN"},
      {ETIMEDOUT, "ETIMEDOUT"}, {ECONNREFUSED, "ECONNREFUSED"}, {EALREADY, "EALREADY"},
      {EINPROGRESS, "EINPROGRESS"}, {ESPIPE, "ESPIPE"}, {EDOM, "EDOM"}, {ETOOMANYREFS, "ETOOMANYREFS"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].number == error) return names[i].name;
  return error ? "E?" : "0";
}

// Prints what came back.
static inline long tell(const char *what, long result) {
  if (result < 0) printf("%s: %s\n", what, error_name(errno));
  else printf("%s: %ld\n", what, result);
  fflush(stdout);
  return result;
}

// The same where only failure or success is worth telling.
static inline long tell_ok(const char *what, long result) {
  printf("%s: %s\n", what, result < 0 ? error_name(errno) : "ok");
  fflush(stdout);
  return result;
}

static inline int events_of(int fd, short wanted) {
  struct pollfd entry = {fd, wanted, 0};
  poll(&entry, 1, 0);
  return entry.revents;
}

static inline void tell_events(const char *what, int fd) {
  int events = events_of(fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM | POLLWRNORM | POLLWRBAND);
  printf("%s:%s%s%s%s%s%s%s%s%s\n", what, events & POLLIN ? " IN" : "", events & POLLPRI ? " PRI" : "",
         events & POLLOUT ? " OUT" : "", events & POLLERR ? " ERR" : "", events & POLLHUP ? " HUP" : "",
         events & POLLRDHUP ? " RDHUP" : "", events & POLLRDNORM ? " RDNORM" : "",
         events & POLLWRNORM ? " WRNORM" : "", events & POLLWRBAND ? " WRBAND" : "");
}

static inline int socket_error(int fd) {
  int error = -1;
  socklen_t len = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
  return error;
}

static inline int option(int fd, int level, int name) {
  int value = -1;
  socklen_t len = sizeof value;
  if (getsockopt(fd, level, name, &value, &len) < 0) return -errno;
  return value;
}

static inline int set_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value);
}

static inline struct sockaddr_in loopback(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// A socket that listens at the loopback, and its address.
static inline int listener(struct sockaddr_in *address, int backlog) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  *address = loopback(0);
  bind(fd, (struct sockaddr *)address, sizeof *address);
  listen(fd, backlog);
  socklen_t len = sizeof *address;
  getsockname(fd, (struct sockaddr *)address, &len);
  return fd;
}

static inline int connect_to(const struct sockaddr_in *address) {
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, (const struct sockaddr *)address, sizeof *address) < 0) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

// Two TCP sockets that are connected with each other.
static inline void tcp_pair(int pair[2]) {
  struct sockaddr_in address;
  int server = listener(&address, 8);
  pair[0] = connect_to(&address);
  pair[1] = accept(server, NULL, NULL);
  close(server);
}

static inline void nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

// Receives once and prints the bytes.
static inline long tell_bytes(const char *what, int fd, size_t room, int flags) {
  char buffer[4096];
  if (room > sizeof buffer) room = sizeof buffer;
  long len = recv(fd, buffer, room, flags);
  if (len < 0) printf("%s: %s\n", what, error_name(errno));
  else printf("%s: %ld \"%.*s\"\n", what, len, (int)(len < (long)room ? len : (long)room), buffer);
  fflush(stdout);
  return len;
}

// run: --faults 1 --fault accept:ECONNABORTED --fault write:EPIPE --fault write:ECONNRESET --fault writev:EPIPE --fault writev:ECONNRESET --fault sendfile:EPIPE --fault sendfile:ECONNRESET
// paths: 8
// A connection that fails is gone: an aborted one is no longer in the queue, and both ends of a broken one know it.
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile int signals;

static void count(int signal) {
  (void)signal;
  signals++;
}

static void broken(int own, int peer, int error) {
  char byte;
  assert(error == EPIPE || error == ECONNRESET);
  assert(signals == (error == EPIPE));
  assert(write(own, "x", 1) == -1 && errno == EPIPE);
  long got;
  // What was sent before arrives.
  while ((got = read(peer, &byte, 1)) == 1);
  assert(got == -1 && errno == ECONNRESET);
  assert(read(peer, &byte, 1) == 0);
}

int main(void) {
  signal(SIGPIPE, count);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
  assert(!bind(listener, (struct sockaddr *)&at, size) && !listen(listener, 1));
  assert(!getsockname(listener, (struct sockaddr *)&at, &size));
  assert(!connect(client, (struct sockaddr *)&at, size));
  int server = accept(listener, NULL, NULL);
  if (server < 0) {
    struct pollfd waiting = {.fd = listener, .events = POLLIN};
    char byte;
    assert(errno == ECONNABORTED && poll(&waiting, 1, 0) == 0);
    assert(read(client, &byte, 1) == -1 && errno == ECONNRESET);
    return 0;
  }
  if (write(client, "a", 1) < 0) return broken(client, server, errno), 0;
  struct iovec part = {.iov_base = "b", .iov_len = 1};
  if (writev(client, &part, 1) < 0) return broken(client, server, errno), 0;
  int file = open("/tmp/faults_connections", O_RDWR | O_CREAT | O_TRUNC, 0600);
  assert(file >= 0 && write(file, "c", 1) == 1 && !lseek(file, 0, SEEK_SET));
  if (sendfile(client, file, NULL, 1) < 0) return broken(client, server, errno), 0;
  char bytes[3];
  assert(read(server, bytes, 3) == 3 && bytes[2] == 'c' && !signals);
  return 0;
}

/* Sends one message to a server: stands for a client in the search for Trojan messages (everett trojans).
 *
 * sender idle
 * sender udp|tcp ADDRESS PORT LENGTH SOURCE-PORT open|close TIME-NS GREETING
 *
 * The message is an input, so it stands for all messages. It is sent when the monotonic clock shows TIME-NS, or never
 * if that is negative. An answer is a finding: no client could have got it.
 * GREETING bytes come from the server before it is sent anything; they are no answer. */
#include <arpa/inet.h>
#include <everett.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static unsigned char message[4096], answer[65536];

static int open_socket(int is_stream, const char *address, const char *port, const char *source) {
  struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
  struct addrinfo *to = 0, *from = 0;
  hints.ai_socktype = is_stream ? SOCK_STREAM : SOCK_DGRAM;
  if (getaddrinfo(address, port, &hints, &to)) exit(3);
  int fd = socket(to->ai_family, hints.ai_socktype, 0);
  hints.ai_family = to->ai_family;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  if (fd < 0 || getaddrinfo(0, source, &hints, &from)) exit(3);
  if (bind(fd, from->ai_addr, from->ai_addrlen)) exit(4);
  if (connect(fd, to->ai_addr, to->ai_addrlen)) exit(5);
  return fd;
}

int main(int argc, char **argv) {
  if (argc < 9) return 0;
  int is_stream = !strcmp(argv[1], "tcp");
  size_t length = (size_t)atoi(argv[4]);
  long long at = atoll(argv[7]);
  if (length > sizeof message) return 3;
  while (at < 0) pause();
  if (at > 0) {
    struct timespec time = {at / 1000000000, at % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, 0);
  }
  if (length > 0) everett_make_symbolic(message, length, "message");
  int fd = open_socket(is_stream, argv[2], argv[3], argv[5]);
  for (long left = atol(argv[8]); left > 0;) {
    size_t most = (size_t)left < sizeof answer ? (size_t)left : sizeof answer;
    ssize_t got = recv(fd, answer, most, 0);
    if (got <= 0) return 7;
    left -= got;
  }
  if (send(fd, message, length, MSG_NOSIGNAL) != (ssize_t)length) return 6;
  if (is_stream && !strcmp(argv[6], "close")) shutdown(fd, SHUT_WR);
  ssize_t count = recv(fd, answer, sizeof answer, 0);
  if (count > 0) everett_report("the server answers a message that no client sends");
  return count < 0;
}

// exec:
// Times at which messages arrived (SO_TIMESTAMP, SO_TIMESTAMPNS, SO_TIMESTAMPING), and sockets with addresses that the host does not have.
#include "sockets.h"

#include <sys/time.h>
#include <time.h>

static long long now(void) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/// Sends a message to the socket itself, waits, receives it and shows when it arrived. The kernel begins to note times a
/// little later than it is asked to: until then it tells when a message was received.
static void arrive(int fd) {
  int tries = 200;
again:;
  struct sockaddr_in own;
  socklen_t len = sizeof own;
  getsockname(fd, (struct sockaddr *)&own, &len);
  long long before = now();
  sendto(fd, "x", 1, 0, (struct sockaddr *)&own, sizeof own);
  long long sent = now();
  usleep(30000);
  char byte, control[256];
  struct iovec data = {&byte, 1};
  struct msghdr message = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  long got = recvmsg(fd, &message, 0);
  for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
    struct timespec time;
    memcpy(&time, CMSG_DATA(one), sizeof time);
    long long at = time.tv_sec * 1000000000LL + time.tv_nsec * (one->cmsg_type == SO_TIMESTAMP ? 1000 : 1);
    if (at > sent + 10000000 && tries-- > 0) goto again;
  }
  tell("received", got);
  if (!CMSG_FIRSTHDR(&message)) puts("no time");
  for (struct cmsghdr *one = CMSG_FIRSTHDR(&message); one; one = CMSG_NXTHDR(&message, one)) {
    struct timespec time;
    memcpy(&time, CMSG_DATA(one), sizeof time);
    long long unit = one->cmsg_type == SO_TIMESTAMP ? 1000 : 1;
    long long at = time.tv_sec * 1000000000LL + time.tv_nsec * unit;
    printf("level %d, type %d, %d bytes, then %d\n", one->cmsg_level, one->cmsg_type, (int)one->cmsg_len,
           at >= before - 1000 && at <= sent + 10000000);
  }
}

static void times(void) {
  puts("-- times");
  int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1, off = 0;
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  tell("bind", bind(fd, (struct sockaddr *)&own, sizeof own));
  arrive(fd);
  tell("ns", setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on));
  // The kernel begins to note times a little later.
  usleep(100000);
  arrive(fd);
  tell("us", setsockopt(fd, SOL_SOCKET, SO_TIMESTAMP, &on, sizeof on));
  int value;
  socklen_t len = sizeof value;
  getsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &value, &len);
  printf("ns is %d\n", value);
  arrive(fd);
  tell("off", setsockopt(fd, SOL_SOCKET, SO_TIMESTAMP, &off, sizeof off));
  arrive(fd);
  // SOF_TIMESTAMPING_RX_SOFTWARE and SOF_TIMESTAMPING_SOFTWARE: only together they tell the time.
  int rounds[] = {1 << 3 | 1 << 4, 1 << 3, 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6, 1 << 30, 0};
  for (int i = 0; i < 5; i++) {
    tell("timestamping", setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &rounds[i], sizeof(int)));
    usleep(50000);
    getsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &value, &len);
    printf("timestamping is %d\n", value);
    arrive(fd);
  }
  tell("both", setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &rounds[0], sizeof(int)));
  tell("both", setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on));
  arrive(fd);
  close(fd);
}

static void foreign(void) {
  puts("-- foreign addresses");
  int fd = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(4711)};
  inet_pton(AF_INET, "198.51.100.77", &address.sin_addr);
  tell("bind", bind(fd, (struct sockaddr *)&address, sizeof address));
  tell("free", setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof on));
  tell("bind", bind(fd, (struct sockaddr *)&address, sizeof address));
  struct sockaddr_in own;
  socklen_t len = sizeof own;
  getsockname(fd, (struct sockaddr *)&own, &len);
  printf("%s %d\n", inet_ntoa(own.sin_addr), ntohs(own.sin_port));
  close(fd);
  fd = socket(AF_INET, SOCK_DGRAM, 0);
  tell("only near", setsockopt(fd, SOL_SOCKET, SO_DONTROUTE, &on, sizeof on));
  tell("far", connect(fd, (struct sockaddr *)&address, sizeof address));
  close(fd);
}

int main(void) {
  times();
  foreign();
  return 0;
}

// exec:
// Locked memory and its limit, msync; small rules of queues, clocks and sockets.
#include "files.h"
#include <mqueue.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

static int option(int fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  return getsockopt(fd, level, name, &value, &size) == 0 ? value : -2;
}

int main(void) {
  start_in("memory-locked");
  int fd = open("file", O_RDWR | O_CREAT, 0600);
  ftruncate(fd, 8192);
  struct stat before, after;
  fstat(fd, &before);
  usleep(20000);
  char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  fstat(fd, &after);
  printf("mapped, so accessed: %d\n", memcmp(&before.st_atim, &after.st_atim, sizeof before.st_atim) != 0);
  TRY(msync(pages, 8192, MS_SYNC | MS_INVALIDATE));
  TRY(mlock(pages + 4096, 10));
  TRY(msync(pages, 8192, MS_SYNC | MS_INVALIDATE));
  TRY(msync(pages, 4096, MS_SYNC | MS_INVALIDATE));
  TRY(msync(pages, 8192, MS_SYNC));
  TRY(munlock(pages + 4096, 10));
  TRY(msync(pages, 8192, MS_ASYNC | MS_INVALIDATE));
  // A mapping that can be written only.
  char *blind = mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0);
  TRY(msync(blind, 4096, MS_SYNC));
  // One behind the end of its file.
  int empty = open("empty", O_RDWR | O_CREAT, 0600);
  char *nothing = mmap(NULL, 4096, PROT_READ, MAP_SHARED, empty, 0);
  TRY(msync(nothing, 4096, MS_SYNC));
  fflush(stdout);
  if (fork() == 0) {
    struct rlimit limit = {8192, 8192};
    setrlimit(RLIMIT_MEMLOCK, &limit);
    setuid(65534);
    char *more = mmap(NULL, 4096 * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TRY(mlock(more, 4096));
    TRY(mlock(more, 8192));
    TRY(mlock(more + 8192, 4096));
    TRY(munlock(more, 4096));
    TRY(mlock(more + 8192, 4096));
    TRY(mlockall(MCL_CURRENT));
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_MEMLOCK, &none);
    TRY(mlock(more, 4096));
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
  munmap(pages, 8192);
  TRY(msync(pages, 8192, MS_SYNC));
  mqd_t queue = mq_open("/everett-locked", O_RDWR | O_CREAT, 0600, NULL);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 0};
  TRY(mq_notify(queue, &event));
  TRY(mq_send(queue, "x", 1, 0));
  mq_unlink("/everett-locked");
  clockid_t clock;
  TRY(clock_getcpuclockid(1, &clock));
  TRY(clock_getcpuclockid(99999999, &clock));
  int udp = socket(AF_INET, SOCK_DGRAM, 0);
  for (int tos = 0; tos < 256; tos += 8) {
    setsockopt(udp, IPPROTO_IP, IP_TOS, &tos, sizeof tos);
    printf("%d ", option(udp, SOL_SOCKET, SO_PRIORITY));
  }
  int on = 1;
  TRY(setsockopt(udp, SOL_SOCKET, 45, &on, sizeof on));
  TRY(option(udp, SOL_SOCKET, 45));
  return 0;
}

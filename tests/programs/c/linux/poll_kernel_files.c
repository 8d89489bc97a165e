// exec:
// Which files of the kernel `poll` and `epoll` know, and what they say of them.
#include "files.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>

static int watch(int fd, int flags) {
  int set = epoll_create1(0);
  struct epoll_event wanted = {.events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDNORM | EPOLLWRNORM | flags};
  if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &wanted) != 0) {
    printf(" epoll: %s", error_name(errno));
    close(set);
    return -1;
  }
  return set;
}

static void show(const char *path, int flags) {
  int fd = open(path, flags);
  printf("%s %d:", path, flags);
  if (fd < 0) {
    printf(" %s\n", error_name(errno));
    return;
  }
  struct pollfd polled = {fd, -1, 0};
  int count = poll(&polled, 1, 0);
  printf(" poll %d %x", count, polled.revents);
  fd_set sets[3];
  for (int at = 0; at < 3; at++) {
    FD_ZERO(&sets[at]);
    FD_SET(fd, &sets[at]);
  }
  struct timeval none = {0, 0};
  printf(" select %d", select(fd + 1, &sets[0], &sets[1], &sets[2], &none));
  int set = watch(fd, 0), edge = set < 0 ? -1 : watch(fd, EPOLLET);
  for (int round = 0; set >= 0 && round < 3; round++) {
    struct epoll_event level = {0}, once = {0};
    int levels = epoll_wait(set, &level, 1, 0), edges = epoll_wait(edge, &once, 1, 0);
    printf(" epoll %d %x, edge %d %x;", levels, level.events, edges, once.events);
    char text[4096];
    for (int reads = 0; round == 0 && reads < 20 && read(fd, text, sizeof text) > 0; reads++) {}
    if (round == 1) lseek(fd, 0, SEEK_SET);
  }
  printf("\n");
  close(set);
  close(edge);
  close(fd);
}

int main(void) {
  static const char *names[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom",
                                "/proc/self/mounts", "/proc/self/mountinfo", "/proc/swaps", "/proc/self/status",
                                "/proc/self/maps", "/proc/self/fd", "/proc/version", "/proc/stat", "/proc/uptime",
                                "/proc/loadavg", "/proc/cpuinfo", "/proc/meminfo", "/proc/sys/kernel/hostname",
                                "/proc/sys/fs/file-max", "/proc/net/tcp", "/proc/net/unix", "/proc/self/comm",
                                "/sys/devices/system/cpu/online", "/proc", "/etc"};
  for (size_t at = 0; at < sizeof names / sizeof *names; at++) show(names[at], O_RDONLY);
  show("/dev/random", O_RDWR);
  show("/dev/null", O_RDWR);
  show("/proc/sys/fs/file-max", O_RDWR);
  show("/proc/net/tcp", O_RDWR);
  show("/sys/devices/system/cpu/online", O_RDWR);
  start_in("poll-kernel-files");
  TRY(mknod("own", S_IFCHR | 0600, 1 << 8 | 8));
  show("own", O_RDONLY);
  int memory = memfd_create("memory", 0);
  TRY(watch(memory, 0));
  return 0;
}

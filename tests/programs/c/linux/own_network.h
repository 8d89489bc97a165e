// A network with nobody else in it, where the machine grants one: no other process has its ports, addresses and names,
// raw and packet sockets receive only their own packets, and its settings are the usual ones.
#pragma once
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static inline void own_network(void) {
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  int fd;
  if (unshare(CLONE_NEWNET) || (fd = socket(AF_INET, SOCK_DGRAM, 0)) < 0) return;
  ioctl(fd, SIOCSIFFLAGS, &request);
  close(fd);
}

// What the programs of this folder that read, write and wait have in common: each case prints what came back.
#ifndef IO_CASES_H
#define IO_CASES_H
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static inline const char *error_name(int error) {
  switch (error) {
#define NAME(e)                                                                                    \
  case e:                                                                                          \
    return #e;
    NAME(EPERM)
    NAME(ENOENT)
    NAME(EINTR)
    NAME(EIO)
    NAME(ENXIO)
    NAME(EBADF)
    NAME(ECHILD)
    NAME(EAGAIN)
    NAME(ENOMEM)
    NAME(EACCES)
    NAME(EFAULT)
    NAME(EBUSY)
    NAME(EEXIST)
    NAME(ENODEV)
    NAME(ENOTDIR)
    NAME(EISDIR)
    NAME(EINVAL)
    NAME(EMFILE)
    NAME(ENOTTY)
    NAME(EFBIG)
    NAME(ENOSPC)
    NAME(ESPIPE)
    NAME(EROFS)
    NAME(EPIPE)
    NAME(ENOSYS)
    NAME(ELOOP)
    NAME(EOVERFLOW)
    NAME(EOPNOTSUPP)
    NAME(ECANCELED)
    NAME(ETIMEDOUT)
#undef NAME
  default:
    return "E?";
  }
}

// Evaluates a call, prints what it returned, and is what it returned.
static inline long show(const char *what, long result) {
  int error = errno;
  if (result == -1)
    printf("%s = -1 %s\n", what, error_name(error));
  else
    printf("%s = %ld\n", what, result);
  errno = error;
  return result;
}
#define SHOW(call) show(#call, (errno = 0, (long)(call)))

// For what differs from run to run: only whether it went well.
#define WELL(call) printf("%s %s\n", #call, (call) ? "yes" : "no")

static inline void show_poll_events(const char *what, int events) {
  printf("%s:%s%s%s%s%s%s%s%s%s%s\n", what, events & POLLIN ? " IN" : "",
         events & POLLPRI ? " PRI" : "", events & POLLOUT ? " OUT" : "",
         events & POLLERR ? " ERR" : "", events & POLLHUP ? " HUP" : "",
         events & POLLNVAL ? " NVAL" : "", events & POLLRDNORM ? " RDNORM" : "",
         events & POLLWRNORM ? " WRNORM" : "", events & POLLRDHUP ? " RDHUP" : "",
         events ? "" : " none");
}

static inline int events_of(int fd) {
  struct pollfd entry = {fd, POLLIN | POLLPRI | POLLOUT | POLLRDNORM | POLLWRNORM | POLLRDHUP, 0};
  poll(&entry, 1, 0);
  return entry.revents;
}
#define EVENTS(fd) show_poll_events("events of " #fd, events_of(fd))

static inline void sleep_ms(long milliseconds) {
  struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  while (nanosleep(&time, &time) && errno == EINTR)
    ;
}

// Writes all of stdout before and after a child runs, so that nothing is written twice.
static inline pid_t fork_flushed(void) {
  fflush(stdout);
  return fork();
}
static inline void end_child(int status) {
  fflush(stdout);
  _exit(status);
}
static inline int wait_for(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}
#endif

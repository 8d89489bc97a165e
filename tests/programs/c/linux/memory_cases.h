// What the tests of mappings have in common.
#pragma once
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096L
#define RW (PROT_READ | PROT_WRITE)
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)

static const char *error_name(int error) {
  switch (error) {
  case 0:
    return "0";
#define NAME(e)                                                                                                        \
  case e:                                                                                                              \
    return #e;
    NAME(EPERM) NAME(ENOENT) NAME(EINTR) NAME(EBADF) NAME(EAGAIN) NAME(ENOMEM) NAME(EACCES) NAME(EFAULT) NAME(EEXIST)
        NAME(ENODEV) NAME(EINVAL) NAME(EFBIG) NAME(ENOSPC) NAME(EOVERFLOW) NAME(EIDRM) NAME(ENOMSG) NAME(E2BIG)
            NAME(ERANGE) NAME(EMSGSIZE) NAME(ETIMEDOUT) NAME(EBUSY) NAME(ENOSYS) NAME(ENAMETOOLONG) NAME(EOPNOTSUPP)
#undef NAME
  }
  return "another error";
}

// Prints what a call returned, or why it failed.
#define SHOW(call)                                                                                                     \
  do {                                                                                                                 \
    errno = 0;                                                                                                         \
    long result = (long)(call);                                                                                        \
    printf("%s = %ld %s\n", #call, result, error_name(result == -1 ? errno : 0));                                      \
  } while (0)

// The same where the number that comes back says nothing.
#define TELL(call)                                                                                                     \
  do {                                                                                                                 \
    errno = 0;                                                                                                         \
    int fails = (long)(call) == -1;                                                                                    \
    printf("%s: %s\n", #call, fails ? error_name(errno) : "done");                                                     \
  } while (0)

static inline char *map_pages(long pages) {
  char *map = mmap(0, (size_t)(pages * PAGE), RW, ANON, -1, 0);
  if (map == MAP_FAILED) {
    perror("mmap");
    exit(9);
  }
  return map;
}

static inline int new_file(const char *name, const char *text, long size) {
  int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
  if (fd < 0) {
    perror(name);
    exit(9);
  }
  if (write(fd, text, strlen(text)) < 0 || ftruncate(fd, size) < 0) {
    perror(name);
    exit(9);
  }
  return fd;
}

// How a child that does this ends.
#define CHILD(what)                                                                                                    \
  do {                                                                                                                 \
    fflush(stdout);                                                                                                    \
    pid_t child = fork();                                                                                              \
    if (child == 0) {                                                                                                  \
      what;                                                                                                            \
      _exit(0);                                                                                                        \
    }                                                                                                                  \
    int status = 0;                                                                                                    \
    waitpid(child, &status, 0);                                                                                        \
    if (WIFSIGNALED(status))                                                                                           \
      printf("%s: signal %d\n", #what, WTERMSIG(status));                                                              \
    else                                                                                                               \
      printf("%s: exit %d\n", #what, WEXITSTATUS(status));                                                             \
  } while (0)

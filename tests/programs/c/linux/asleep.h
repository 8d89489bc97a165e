// Waiting until another process waits: what it waits for comes only then, however slow the machine is.
#pragma once
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Returns when the first thread of a process sleeps in a system call.
static inline void until_asleep(int process) {
  char path[32], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", process);
  for (;;) {
    int fd = open(path, O_RDONLY);
    if (fd < 0)
      return; // It has ended.
    long got = read(fd, text, sizeof text - 1);
    close(fd);
    text[got > 0 ? got : 0] = 0;
    // The name, in parentheses, comes before the state.
    char *name = strrchr(text, ')');
    if (got <= 0 || (name && name[1] && name[2] && strchr("SZX", name[2])))
      return;
    usleep(1000);
  }
}

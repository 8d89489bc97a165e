// exec:
// Terminals: words and literal characters of a line, minimum and time of raw reads, stopping, and packet mode.
#include "io_cases.h"
#include <termios.h>

static void show_text(const char *what, int fd) {
  char buffer[256];
  errno = 0;
  long got = read(fd, buffer, sizeof buffer);
  printf("%s %ld %s:", what, got, got < 0 ? error_name(errno) : "");
  for (long i = 0; i < got; i++)
    if (buffer[i] < 32 || buffer[i] == 127)
      printf("<%d>", buffer[i]);
    else
      putchar(buffer[i]);
  printf("\n");
}

static void type(int master, const char *text) {
  write(master, text, strlen(text));
  // The line discipline of a real terminal works in the background.
  usleep(20000);
}

static int ready(int fd, int events) {
  struct pollfd poll_fd = {fd, events, 0};
  return poll(&poll_fd, 1, 0) == 1 ? poll_fd.revents : 0;
}

static void set_raw(int fd, int minimum, int tenths) {
  struct termios settings;
  tcgetattr(fd, &settings);
  settings.c_lflag &= ~(ICANON | ECHO);
  settings.c_cc[VMIN] = minimum;
  settings.c_cc[VTIME] = tenths;
  tcsetattr(fd, TCSANOW, &settings);
}

static long milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(void) {
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  grantpt(master);
  unlockpt(master);
  char name[64];
  ptsname_r(master, name, sizeof name);
  int slave = open(name, O_RDWR | O_NOCTTY);

  type(master, "one two_3  \027four\n");
  show_text("word", slave);
  show_text("echo", master);
  type(master, "a\026\003b\026\n\n");
  show_text("literal", slave);
  show_text("echo", master);
  type(master, "xy\022z\n");
  show_text("reprinted", slave);
  show_text("echo", master);

  type(master, "\023");
  SHOW(ready(slave, POLLOUT) & POLLOUT);
  fcntl(slave, F_SETFL, O_NONBLOCK);
  SHOW(write(slave, "no", 2));
  type(master, "\021");
  SHOW(write(slave, "go", 2));
  usleep(20000);
  show_text("started", master);
  SHOW(tcflow(slave, TCOOFF));
  SHOW(write(slave, "no", 2));
  SHOW(tcflow(slave, TCOON));
  SHOW(tcflow(slave, TCIOFF));
  usleep(20000);
  show_text("told to stop", master);
  SHOW(tcflow(slave, 9));

  set_raw(slave, 0, 0);
  fcntl(slave, F_SETFL, 0);
  show_text("nothing", slave);
  set_raw(slave, 0, 2);
  long start = milliseconds();
  show_text("in time", slave);
  long passed = milliseconds() - start;
  printf("%d\n", passed >= 150 && passed < 5000);
  set_raw(slave, 3, 0);
  type(master, "ab");
  SHOW(ready(slave, POLLIN) & POLLIN);
  type(master, "cd");
  SHOW(ready(slave, POLLIN) & POLLIN);
  show_text("minimum", slave);
  set_raw(slave, 3, 1);
  type(master, "ab");
  SHOW(ready(slave, POLLIN) & POLLIN);
  show_text("partly", slave);

  int on = 1;
  SHOW(ioctl(slave, TIOCPKT, &on));
  SHOW(ioctl(master, TIOCPKT, &on));
  write(slave, "text", 4);
  usleep(20000);
  show_text("packet", master);
  SHOW(tcflush(slave, TCIFLUSH));
  SHOW(ready(master, POLLIN | POLLPRI) & (POLLIN | POLLPRI));
  show_text("flushed", master);
  SHOW(tcflow(slave, TCOOFF));
  SHOW(tcflow(slave, TCOON));
  show_text("started", master);
  on = 0;
  SHOW(ioctl(master, TIOCPKT, &on));
  write(slave, "text", 4);
  usleep(20000);
  show_text("no packet", master);
  return 0;
}

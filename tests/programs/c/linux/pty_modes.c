// exec:
// Terminals: words and literal characters of a line, minimum and time of raw reads, stopping, and packet mode.
#include "io_cases.h"
#include <termios.h>

// Reads at least so many bytes: what a real terminal echoes may come in parts.
static void show_bytes(const char *what, int fd, long least) {
  char buffer[256];
  errno = 0;
  long got = read(fd, buffer, sizeof buffer);
  for (long more; got > 0 && got < least; got += more)
    if ((more = read(fd, buffer + got, sizeof buffer - got)) <= 0)
      break;
  printf("%s %ld %s:", what, got, got < 0 ? error_name(errno) : "");
  for (long i = 0; i < got; i++)
    if (buffer[i] < 32 || buffer[i] == 127)
      printf("<%d>", buffer[i]);
    else
      putchar(buffer[i]);
  printf("\n");
}

static void show_text(const char *what, int fd) { show_bytes(what, fd, 1); }

static int master, slave;

static void type(const char *text) {
  write(master, text, strlen(text));
  // The line discipline of a real terminal works in the background. Whoever asks for input that is not there yet waits
  // for it to have done its work.
  struct pollfd done = {slave, POLLIN, 0};
  poll(&done, 1, 0);
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
  master = posix_openpt(O_RDWR | O_NOCTTY);
  grantpt(master);
  unlockpt(master);
  char name[64];
  ptsname_r(master, name, sizeof name);
  slave = open(name, O_RDWR | O_NOCTTY);

  type("one two_3  \027four\n");
  show_text("word", slave);
  show_bytes("echo", master, 38);
  type("a\026\003b\026\n\n");
  show_text("literal", slave);
  show_bytes("echo", master, 12);
  type("xy\022z\n");
  show_text("reprinted", slave);
  show_bytes("echo", master, 11);

  type("\023");
  SHOW(ready(slave, POLLOUT) & POLLOUT);
  fcntl(slave, F_SETFL, O_NONBLOCK);
  SHOW(write(slave, "no", 2));
  type("\021");
  SHOW(write(slave, "go", 2));
  show_bytes("started", master, 2);
  SHOW(tcflow(slave, TCOOFF));
  SHOW(write(slave, "no", 2));
  SHOW(tcflow(slave, TCOON));
  SHOW(tcflow(slave, TCIOFF));
  show_text("told to stop", master);
  SHOW(tcflow(slave, 9));

  set_raw(slave, 0, 0);
  fcntl(slave, F_SETFL, 0);
  show_text("nothing", slave);
  set_raw(slave, 0, 2);
  long start = milliseconds();
  show_text("in time", slave);
  long passed = milliseconds() - start;
  printf("%d\n", passed >= 150);
  set_raw(slave, 3, 0);
  type("ab");
  SHOW(ready(slave, POLLIN) & POLLIN);
  type("cd");
  SHOW(ready(slave, POLLIN) & POLLIN);
  show_text("minimum", slave);
  set_raw(slave, 3, 1);
  type("ab");
  SHOW(ready(slave, POLLIN) & POLLIN);
  show_text("partly", slave);

  int on = 1;
  SHOW(ioctl(slave, TIOCPKT, &on));
  SHOW(ioctl(master, TIOCPKT, &on));
  write(slave, "text", 4);
  show_bytes("packet", master, 5);
  SHOW(tcflush(slave, TCIFLUSH));
  SHOW(ready(master, POLLIN | POLLPRI) & (POLLIN | POLLPRI));
  show_text("flushed", master);
  SHOW(tcflow(slave, TCOOFF));
  SHOW(tcflow(slave, TCOON));
  show_text("started", master);
  on = 0;
  SHOW(ioctl(master, TIOCPKT, &on));
  write(slave, "text", 4);
  show_bytes("no packet", master, 4);
  return 0;
}

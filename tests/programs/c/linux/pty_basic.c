// exec:
// Pseudo-terminals: both sides, lines and their editing, settings, and the signals of a session.
#include "io_cases.h"
#include <termios.h>

// Reads at least so many bytes: the line discipline of a real terminal works in the background, and what it echoes may
// come in parts.
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

static int available(int fd) {
  int count = -1;
  ioctl(fd, FIONREAD, &count);
  return count;
}

int main(void) {
  // Whoever starts this in the background may have told it to ignore ^C.
  signal(SIGINT, SIG_DFL);
  int master = posix_openpt(O_RDWR | O_NOCTTY);
  SHOW(master >= 0);
  char name[64];
  SHOW(ptsname_r(master, name, sizeof name));
  SHOW(open(name, O_RDWR | O_NOCTTY));
  SHOW(grantpt(master));
  SHOW(unlockpt(master));
  int slave = open(name, O_RDWR | O_NOCTTY);
  SHOW(slave >= 0);
  SHOW(isatty(slave));
  SHOW(isatty(master));
  int p[2];
  pipe(p);
  SHOW(isatty(p[0]));
  WELL(!strcmp(ttyname(slave), name));
  struct stat status;
  fstat(slave, &status);
  printf("%o\n", status.st_mode & S_IFMT);

  struct termios settings;
  SHOW(tcgetattr(slave, &settings));
  printf("%o %o %o %o\n", settings.c_iflag, settings.c_oflag, settings.c_cflag & CSIZE, settings.c_lflag);
  printf("%d %d %d %d %d\n", settings.c_cc[VINTR], settings.c_cc[VERASE], settings.c_cc[VEOF],
         settings.c_cc[VMIN], settings.c_cc[VKILL]);
  struct winsize window = {24, 80, 0, 0};
  SHOW(ioctl(master, TIOCSWINSZ, &window));
  window.ws_row = window.ws_col = 0;
  SHOW(ioctl(slave, TIOCGWINSZ, &window));
  printf("%d %d\n", window.ws_row, window.ws_col);

  write(master, "hel", 3);
  EVENTS(slave);
  EVENTS(master);
  show_bytes("echo", master, 3);
  write(master, "lo\n", 3);
  EVENTS(slave);
  show_bytes("echo", master, 4);
  SHOW(available(slave));
  show_text("line", slave);
  write(master, "one\ntwo\n", 8);
  show_text("first line", slave);
  show_text("second line", slave);
  show_bytes("echo", master, 10);
  write(master, "abX\177c\n", 6);
  show_text("erased", slave);
  show_bytes("echo", master, 9);
  write(master, "gone\025kept\r", 10);
  show_text("killed", slave);
  show_bytes("echo", master, 22);
  write(master, "\177\177x\001\177\n", 6);
  show_text("nothing to erase", slave);
  show_bytes("echo", master, 11);
  write(master, "no newline\004", 11);
  show_text("end of file", slave);
  write(master, "\004", 1);
  show_text("end of file", slave);
  show_bytes("echo", master, 10);
  char small[4];
  write(master, "longer\n", 7);
  SHOW(read(slave, small, 4));
  show_text("rest", slave);
  show_bytes("echo", master, 8);

  write(slave, "out\nput\n", 8);
  show_bytes("printed", master, 10);
  settings.c_oflag &= ~OPOST;
  SHOW(tcsetattr(slave, TCSANOW, &settings));
  write(slave, "out\n", 4);
  show_bytes("printed raw", master, 4);
  settings.c_lflag &= ~ECHO;
  tcsetattr(slave, TCSANOW, &settings);
  write(master, "secret\n", 7);
  show_text("line", slave);
  EVENTS(master);
  settings.c_lflag &= ~(ICANON | ISIG);
  settings.c_iflag &= ~ICRNL;
  tcsetattr(slave, TCSANOW, &settings);
  write(master, "a\177\003\r", 4);
  EVENTS(slave);
  SHOW(available(slave));
  show_text("raw", slave);
  settings.c_cc[VMIN] = 0;
  settings.c_cc[VTIME] = 0;
  tcsetattr(slave, TCSANOW, &settings);
  show_text("nothing, no wait", slave);
  write(master, "unread", 6);
  poll(&(struct pollfd){slave, POLLIN, 0}, 1, -1);
  SHOW(tcflush(slave, TCIFLUSH));
  show_text("flushed", slave);

  // Without O_NOCTTY a session gets a terminal, and ^C goes to whoever is in front.
  int second = posix_openpt(O_RDWR | O_NOCTTY);
  unlockpt(second);
  ptsname_r(second, name, sizeof name);
  pid_t child = fork_flushed();
  if (!child) {
    setsid();
    SHOW(open("/dev/tty", O_RDWR));
    int own = open(name, O_RDWR);
    WELL(tcgetpgrp(own) == getpid());
    WELL(tcgetsid(own) == getpid());
    WELL(open("/dev/tty", O_RDWR) >= 0);
    SHOW(tcgetpgrp(slave));
    fflush(stdout);
    write(p[1], "r", 1);
    char byte;
    read(own, &byte, 1);
    end_child(1);
  }
  char byte;
  read(p[0], &byte, 1);
  write(second, "\003", 1);
  SHOW(wait_for(child) == 256 + SIGINT);
  show_bytes("echo", second, 2);
  EVENTS(second);
  show_text("nobody there", second);

  fcntl(slave, F_SETFL, O_RDWR | O_NONBLOCK);
  settings.c_cc[VMIN] = 1;
  tcsetattr(slave, TCSANOW, &settings);
  SHOW(read(slave, &byte, 1));
  close(master);
  EVENTS(slave);
  SHOW(read(slave, &byte, 1));
  SHOW(write(slave, "x", 1));
  return 0;
}

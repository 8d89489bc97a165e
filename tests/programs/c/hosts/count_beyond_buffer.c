// run:
// paths: 2
// finding: out-of-bounds 21
// Counts beyond the end of a buffer do harm only where more arrives than the buffer holds.
#include <everett.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
  char buffer[8];
  int p[2], s[2];
  if (pipe(p) || socketpair(AF_UNIX, SOCK_STREAM, 0, s)) return 1;
  write(p[1], "12345678", 8);
  printf("%zd\n", read(p[0], buffer, 4096));
  write(s[1], "1234", 4);
  printf("%zd\n", recv(s[0], buffer, 4096, 0));
  fflush(stdout);
  if (everett_choose(2, "more")) {
    write(p[1], "123456789", 9);
    read(p[0], buffer, 4096);
  }
  return 0;
}

// Calls of the C library with buffers that are large enough, or, with a second argument, too small by little.
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <wchar.h>
char *gets(char *to);
static char *volatile block;
static volatile int sink;

static int filled_pipe(void) {
  int ends[2];
  if (pipe(ends) || write(ends[1], "0123456789abcdef", 16) != 16) exit(9);
  close(ends[1]);
  return ends[0];
}

static void receive(size_t size) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || write(ends[0], "0123456789abcdef", 16) != 16) exit(9);
  char other[4];
  struct iovec parts[2] = {{other, sizeof other}, {block, size}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  sink = (int)recvmsg(ends[1], &message, 0);
}

static void send_parts(size_t size) {
  struct iovec parts[2] = {{"ab", 2}, {block, size}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) exit(9);
  sink = (int)sendmsg(ends[0], &message, 0);
}

static void scan(const char *text, const char *format) {
  int number;
  char *own = 0;
  if (strchr(format, 'm')) sscanf(text, format, &own, &number, block);
  else sscanf(text, format, &number, block);
  free(own);
}

int main(int argc, char **argv) {
  const char *what = argv[1];
  int is_wrong = argc > 2;
  size_t size = is_wrong ? 9 : 8;
  block = malloc(8);
  memset(block, 'x', 8);
  if (!strcmp(what, "readv")) {
    char other[4];
    struct iovec parts[2] = {{other, sizeof other}, {block, size}};
    sink = (int)readv(filled_pipe(), parts, 2);
  } else if (!strcmp(what, "writev")) {
    struct iovec parts[2] = {{"ab", 2}, {block, size}};
    int ends[2];
    if (pipe(ends)) return 9;
    sink = (int)writev(ends[1], parts, 2);
  } else if (!strcmp(what, "recvmsg")) receive(size);
  else if (!strcmp(what, "sendmsg")) send_parts(size);
  else if (!strcmp(what, "pread")) {
    FILE *file = fopen(argv[0], "r");
    sink = (int)pread(fileno(file), block, size, 3);
  } else if (!strcmp(what, "readlink")) sink = (int)readlink("/proc/self/exe", block, size);
  else if (!strcmp(what, "getcwd")) {
    if (chdir(is_wrong ? "/proc/self" : "/proc")) return 9;
    sink = getcwd(block, 40) != 0;
  } else if (!strcmp(what, "realpath")) sink = realpath(is_wrong ? "/usr/share" : "/usr", block) != 0;
  else if (!strcmp(what, "gets")) {
    if (dup2(filled_pipe(), 0)) return 9;
    char *large = malloc(17);
    sink = gets(is_wrong ? block : large) != 0;
  } else if (!strcmp(what, "sscanf")) scan(is_wrong ? "7 01234567" : "7 0123456", "%d %s");
  else if (!strcmp(what, "scanset")) scan(is_wrong ? "7]01234567" : "7]0123456", "%i%*[]]%[^]]");
  else if (!strcmp(what, "characters")) scan("7 0123456789", is_wrong ? "%d %9c" : "%d %8c");
  else if (!strcmp(what, "allocated")) scan(is_wrong ? "abcdefghijkl 7 01234567" : "abcdefghijkl 7 x", "%ms %hhd%s");
  else if (!strcmp(what, "numbers")) {
    struct numbers { short a; double b; long c; } *all = malloc(is_wrong ? sizeof *all - 1 : sizeof *all);
    sink = sscanf("5 2.5 7 9", "%hd%lf%n%ld", &all->a, &all->b, (int *)(void *)&all->c, &all->c);
  } else if (!strcmp(what, "fscanf")) {
    FILE *file = fdopen(filled_pipe(), "r");
    sink = fscanf(file, is_wrong ? "%8s" : "%7s", block);
  } else if (!strcmp(what, "wcscpy")) {
    wcscpy((wchar_t *)block, is_wrong ? L"ab" : L"a");
  } else if (!strcmp(what, "strlcpy")) strlcpy(block, "0123456789", size);
  else if (!strcmp(what, "memcmp")) sink = memcmp(block, "xxxxxxxxxxxxx", size);
  else if (!strcmp(what, "equal")) sink = memcmp(block, argv[0] + sink, size) == 0;
  else if (!strcmp(what, "puts")) {
    if (!is_wrong) block[7] = 0;
    puts(block);
  } else if (!strcmp(what, "fputs")) {
    if (!is_wrong) block[7] = 0;
    fputs(block, stdout);
  } else return 9;
  printf("done %d\n", sink != 0 || block[0] != 0);
  return 0;
}

// exec:
// What /proc tells of sockets, interfaces, descriptors and memory.
#include "files.h"
#include <arpa/inet.h>
#include <elf.h>
#include <poll.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "own_network.h"

static char text[1 << 20];

static long slurp(const char *path) {
  int fd = open(path, O_RDONLY);
  long total = 0, count;
  if (fd < 0) {
    printf("%s: %s\n", path, error_name(errno));
    return text[0] = 0;
  }
  while ((count = read(fd, text + total, sizeof text - 1 - total)) > 0) total += count;
  text[total] = 0;
  close(fd);
  return total;
}

// The line of a socket, by the number of its inode.
static char *line_of(const char *path, int fd, int column) {
  static char line[512];
  struct stat status;
  fstat(fd, &status);
  slurp(path);
  char *at = text;
  while ((at = strchr(at, '\n')) && *++at) {
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
    char copy[512], *word, *rest = copy;
    strcpy(copy, line);
    for (int i = 0; (word = strtok_r(rest, " ", &rest)); i++)
      if (i == column && strtoul(word, 0, 10) == status.st_ino) return line;
  }
  return NULL;
}

static void internet(const char *path, int fd) {
  char *line = line_of(path, fd, 9), *word, *rest = line;
  if (!line) {
    printf("%s: not found\n", path);
    return;
  }
  size_t length = strlen(line);
  struct sockaddr_storage own;
  socklen_t size = sizeof own;
  getsockname(fd, (struct sockaddr *)&own, &size);
  unsigned port = ntohs(((struct sockaddr_in *)&own)->sin_port), shown = 0;
  printf("%s:", path);
  for (int i = 0; (word = strtok_r(rest, " ", &rest)); i++) {
    if (i == 1) {
      char *colon = strchr(word, ':');
      shown = strtoul(colon + 1, 0, 16);
      printf(" local %.*s", (int)(colon - word), word);
    }
    if (i == 2) printf(" remote %.*s", (int)strcspn(word, ":"), word);
    if (i == 3) printf(" state %s", word);
    if (i == 4) printf(" queues %s", word);
    if (i == 7) printf(" uid %s", word);
  }
  printf(", port %d, %zu\n", shown == port, strstr(path, "6") ? 0 : length);
}

static int bound(int domain, int kind) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  struct sockaddr_in6 address6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int fd = socket(domain, kind, 0);
  if (domain == AF_INET) bind(fd, (struct sockaddr *)&address, sizeof address);
  else bind(fd, (struct sockaddr *)&address6, sizeof address6);
  return fd;
}

static void sockets(void) {
  int listener = bound(AF_INET, SOCK_STREAM), listener6 = bound(AF_INET6, SOCK_STREAM);
  listen(listener, 5), listen(listener6, 5);
  internet("/proc/net/tcp", listener);
  internet("/proc/net/tcp6", listener6);
  internet("/proc/self/net/tcp", listener);
  struct sockaddr_in to;
  socklen_t size = sizeof to;
  getsockname(listener, (struct sockaddr *)&to, &size);
  int client = socket(AF_INET, SOCK_STREAM, 0);
  connect(client, (struct sockaddr *)&to, size);
  poll(&(struct pollfd){listener, POLLIN, 0}, 1, -1);
  internet("/proc/net/tcp", listener);
  int server = accept(listener, 0, 0);
  send(client, "abc", 3, 0);
  poll(&(struct pollfd){server, POLLIN, 0}, 1, -1);
  // What the peer has not acknowledged counts as queued.
  for (int queued = 1; ioctl(client, TIOCOUTQ, &queued) == 0 && queued > 0;) usleep(1000);
  internet("/proc/net/tcp", client);
  internet("/proc/net/tcp", server);
  shutdown(client, SHUT_WR);
  poll(&(struct pollfd){server, POLLRDHUP, 0}, 1, -1);
  internet("/proc/net/tcp", server);
  int udp = bound(AF_INET, SOCK_DGRAM), udp6 = bound(AF_INET6, SOCK_DGRAM);
  internet("/proc/net/udp", udp);
  internet("/proc/net/udp6", udp6);
  connect(udp, (struct sockaddr *)&to, size);
  internet("/proc/net/udp", udp);
  struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "named"};
  int unix_listener = socket(AF_UNIX, SOCK_STREAM, 0), packets = socket(AF_UNIX, SOCK_DGRAM, 0), pair[2];
  bind(unix_listener, (struct sockaddr *)&name, sizeof name);
  listen(unix_listener, 5);
  memcpy(name.sun_path, "\0ab\0c", 5);
  bind(packets, (struct sockaddr *)&name, offsetof(struct sockaddr_un, sun_path) + 5);
  socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair);
  int all[] = {unix_listener, packets, pair[0], socket(AF_UNIX, SOCK_STREAM, 0)};
  for (int i = 0; i < 4; i++) {
    char *line = line_of("/proc/net/unix", all[i], 6);
    printf("unix: %.35s", line ? strchr(line, ':') : "?");
    char *path = line ? strpbrk(line, "n@") : NULL;
    printf(" %s\n", path ? path : "");
  }
  slurp("/proc/net/dev");
  char *lo = strstr(text, "\n    lo: ");
  printf("dev: %d\n", lo != NULL);
  printf("%.*s\n", (int)(strcspn(strchr(text, '\n') + 1, "\n") + strcspn(text, "\n") + 1), text);
}

static void descriptors(void) {
  int file = open("file", O_CREAT | O_RDWR | O_APPEND, 0600), copy = fcntl(file, F_DUPFD_CLOEXEC, 0);
  write(file, "12345", 5);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  int signals = signalfd(-1, &set, SFD_NONBLOCK);
  pid_t child = fork();
  if (child == 0) _exit(0);
  int process = syscall(434, child, 0);
  int counter = eventfd(17, EFD_SEMAPHORE), timer = timerfd_create(CLOCK_MONOTONIC, 0), watch = epoll_create1(0);
  timerfd_settime(timer, 0, &(struct itimerspec){{1, 2}, {0, 0}}, 0);
  epoll_ctl(watch, EPOLL_CTL_ADD, counter, &(struct epoll_event){.events = EPOLLIN | EPOLLET, .data.u64 = 0x1234});
  int all[] = {file, copy, signals, counter, timer, watch};
  for (int i = 0; i < 6; i++) {
    char path[64], *line, *rest = text;
    struct stat status;
    fstat(all[i], &status);
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", all[i]);
    slurp(path);
    while ((line = strtok_r(rest, "\n", &rest))) {
      if (!strncmp(line, "mnt_id", 6) || !strncmp(line, "eventfd-id", 10)) continue;
      if (!strncmp(line, "tfd:", 4)) {
        printf("watched %d, ", atoi(line + 4) == counter);
        line[strcspn(line, "i")] = 0;
        line += strcspn(line, "e");
      }
      if (!strncmp(line, "ino:", 4)) printf("inode %d\n", strtoul(line + 5, 0, 10) == status.st_ino);
      else printf("%s\n", line);
    }
  }
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", process);
  for (int reaped = 0; reaped < 2; reaped++) {
    slurp(path);
    char *pid = strstr(text, "Pid:\t");
    printf("pidfd %d\n", pid ? atoi(pid + 5) == (reaped ? -1 : child) : -1);
    if (!reaped) waitpid(child, 0, 0);
  }
  TRY(access("/proc/self/fdinfo/999", F_OK));
  close(file);
  snprintf(path, sizeof path, "/proc/self/fdinfo/%d", file);
  TRY(access(path, F_OK));
}

// Which mapping an address is in.
static void locate(const char *what, const void *place, const char *path) {
  slurp(path);
  char *line, *rest = text;
  while ((line = strtok_r(rest, "\n", &rest))) {
    unsigned long start, end, offset;
    char rights[8], name[200] = "";
    if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %199s", &start, &end, rights, &offset, name) < 4) continue;
    if ((unsigned long)place < start || (unsigned long)place >= end) continue;
    printf("%s: %s %s\n", what, rights, name[0] == '[' ? name : "");
    return;
  }
  printf("%s: nowhere\n", what);
}

static void memory(void) {
  int local = 0;
  static int global = 1;
  locate("local", &local, "/proc/self/maps");
  locate("global", &global, "/proc/self/maps");
  locate("code", (const void *)memory, "/proc/self/maps");
  void *mapped = mmap(0, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  locate("mapped", mapped, "/proc/self/maps");
  mprotect(mapped, 8192, PROT_NONE);
  locate("mapped", mapped, "/proc/self/maps");
  void *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  locate("shared", shared, "/proc/self/maps");
  locate("break", sbrk(4096), "/proc/self/maps");
  locate("local", &local, "/proc/self/smaps");
  slurp("/proc/self/smaps");
  printf("smaps %d %d\n", strstr(text, "\nRss: ") != NULL, strstr(text, "VmFlags: ") != NULL);
}

static void auxiliary(void) {
  Elf64_auxv_t entry;
  int fd = open("/proc/self/auxv", O_RDONLY), pages = 0, random = 0, last = 0;
  while (read(fd, &entry, sizeof entry) == sizeof entry) {
    if (entry.a_type == AT_PAGESZ) pages = entry.a_un.a_val == (unsigned long)getpagesize();
    if (entry.a_type == AT_RANDOM) random = entry.a_un.a_val == getauxval(AT_RANDOM);
    last = entry.a_type;
  }
  printf("auxv: %d %d, ends with %d\n", pages, random, last);
}

static void adjust(const char *value) {
  int fd = open("/proc/self/oom_score_adj", O_WRONLY);
  errno = 0;
  long written = write(fd, value, strlen(value));
  close(fd);
  slurp("/proc/self/oom_score_adj");
  printf("adjust %s: %ld %s, is %s", value, written, error_name(written < 0 ? errno : 0), text);
}

static void scores(void) {
  slurp("/proc/self/oom_score_adj");
  adjust("0");
  adjust("500");
  adjust("7\n");
  adjust("1001");
  adjust("x");
  fflush(stdout);
  if (fork() == 0) {
    slurp("/proc/self/oom_score_adj");
    printf("child %s", text);
    fflush(stdout);
    _exit(0);
  }
  wait(NULL);
  int fd = open("/proc/self/comm", O_WRONLY);
  write(fd, "renamed-to-something", 20);
  slurp("/proc/self/comm");
  printf("%s", text);
}

int main(void) {
  start_in("files-proc-more");
  own_network();
  sockets();
  descriptors();
  memory();
  auxiliary();
  scores();
  return 0;
}

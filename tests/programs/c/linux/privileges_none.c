// exec:
// What a user without capabilities may not do: low ports, other users' sockets and files, options of sockets.
#include "files.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <mqueue.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "own_network.h"

// The results of calls, without the numbers of descriptors.
static const char *error_of(int error) {
  switch (error) {
  case 0: return "done";
  case ECONNREFUSED: return "ECONNREFUSED";
  case EPROTOTYPE: return "EPROTOTYPE";
  case EADDRINUSE: return "EADDRINUSE";
  default: return error_name(error);
  }
}

#define SEE(call) (errno = 0, (call) < 0 ? 0 : (errno = 0), printf("%s: %s\n", #call, error_of(errno)))

static int option(int domain, int type, int level, int name, int value) {
  int fd = socket(domain, type, 0), result = setsockopt(fd, level, name, &value, sizeof value), error = errno;
  close(fd);
  errno = error;
  return result;
}

static int bind_to(int domain, int type, int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  struct sockaddr_in6 address6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address6.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
  int fd = socket(domain, type, 0), error;
  int result = domain == AF_INET ? bind(fd, (void *)&address, sizeof address)
                                 : bind(fd, (void *)&address6, sizeof address6);
  error = errno;
  close(fd);
  errno = error;
  return result;
}

static struct sockaddr_un named(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strcpy(address.sun_path, name);
  return address;
}

static int connect_to(int type, const char *name) {
  struct sockaddr_un address = named(name);
  int fd = socket(AF_UNIX, type, 0), result = connect(fd, (void *)&address, sizeof address), error = errno;
  close(fd);
  errno = error;
  return result;
}

static int send_to(const char *name) {
  struct sockaddr_un address = named(name);
  int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
  int result = sendto(fd, "x", 1, 0, (void *)&address, sizeof address), error = errno;
  close(fd);
  errno = error;
  return result;
}

static void made(int type, const char *name, mode_t mode) {
  struct sockaddr_un address = named(name);
  int fd = socket(AF_UNIX, type, 0);
  bind(fd, (void *)&address, sizeof address);
  listen(fd, 5);
  chmod(name, mode);
}

static void ports(void) {
  SEE(bind_to(AF_INET, SOCK_STREAM, 811));
  SEE(bind_to(AF_INET, SOCK_STREAM, 1023));
  SEE(bind_to(AF_INET, SOCK_DGRAM, 812));
  SEE(bind_to(AF_INET6, SOCK_STREAM, 813));
  SEE(bind_to(AF_INET, SOCK_STREAM, 0));
}

static void paths(void) {
  SEE(connect_to(SOCK_STREAM, "stream"));
  SEE(connect_to(SOCK_STREAM, "open"));
  SEE(connect_to(SOCK_DGRAM, "stream"));
  SEE(connect_to(SOCK_DGRAM, "datagram"));
  SEE(connect_to(SOCK_DGRAM, "open datagram"));
  SEE(connect_to(SOCK_STREAM, "closed/stream"));
  SEE(connect_to(SOCK_STREAM, "mine"));
  SEE(connect_to(SOCK_STREAM, "file"));
  SEE(send_to("datagram"));
  SEE(send_to("open datagram"));
  SEE(send_to("nothing"));
  struct sockaddr_un address = named("closed/new");
  SEE(bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address));
  address = named("stream");
  SEE(bind(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address));
}

static void access_times(void) {
  SEE(open("theirs", O_RDONLY | O_NOATIME));
  SEE(open("own", O_RDONLY | O_NOATIME));
  SEE(open("theirs", O_RDONLY | O_NOATIME | O_PATH));
  SEE(open("closed", O_RDONLY | O_NOATIME));
  SEE(open("nothing", O_RDONLY | O_NOATIME));
  int fd = open("theirs", O_RDONLY);
  SEE(fcntl(fd, F_SETFL, O_NOATIME));
  SEE(fcntl(fd, F_SETFL, O_NONBLOCK));
  printf("flags %d\n", (fcntl(fd, F_GETFL) & (O_NOATIME | O_NONBLOCK)) == O_NONBLOCK);
  fd = open("own", O_RDONLY);
  SEE(fcntl(fd, F_SETFL, O_NOATIME));
  printf("flags %d\n", (fcntl(fd, F_GETFL) & O_NOATIME) == O_NOATIME);
}

static void options(void) {
  SEE(option(AF_INET, SOCK_STREAM, SOL_SOCKET, SO_PRIORITY, 6));
  SEE(option(AF_INET, SOCK_STREAM, SOL_SOCKET, SO_PRIORITY, 7));
  SEE(option(AF_UNIX, SOCK_STREAM, SOL_SOCKET, SO_PRIORITY, 7));
  SEE(option(AF_INET, SOCK_STREAM, SOL_SOCKET, SO_PRIORITY, -1));
  SEE(option(AF_INET, SOCK_STREAM, SOL_SOCKET, SO_RCVBUFFORCE, 7000));
  SEE(option(AF_INET, SOCK_STREAM, SOL_SOCKET, SO_SNDBUFFORCE, 7000));
  SEE(option(AF_INET, SOCK_STREAM, SOL_SOCKET, SO_MARK, 0));
  SEE(option(AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_MARK, 3));
  SEE(option(AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_DEBUG, 1));
  SEE(option(AF_INET, SOCK_DGRAM, SOL_SOCKET, SO_DEBUG, 0));
  SEE(option(AF_INET, SOCK_DGRAM, SOL_IP, IP_TRANSPARENT, 1));
  SEE(option(AF_INET, SOCK_DGRAM, SOL_IP, IP_TRANSPARENT, 0));
  SEE(option(AF_INET, SOCK_DGRAM, SOL_IP, IP_FREEBIND, 1));
  SEE(option(AF_INET, SOCK_DGRAM, SOL_IP, IP_TOS, 0xe0));
  int fd = socket(AF_INET, SOCK_DGRAM, 0);
  SEE(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
  SEE(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "", 1));
  SEE(setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "none", 5));
}

static void queues(void) {
  SEE(mq_open("/everett-others", O_RDONLY));
  SEE(mq_open("/everett-group", O_RDONLY));
  SEE(mq_open("/everett-group", O_RDWR));
  SEE(syscall(SYS_mq_unlink, "everett-others"));
  SEE(mq_open("/everett-large", O_CREAT | O_RDWR, 0600, &(struct mq_attr){.mq_maxmsg = 20, .mq_msgsize = 8}));
}

// Credentials of another process or user in a message.
static int claim(pid_t pid, uid_t uid, gid_t gid) {
  int pair[2];
  socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
  union {
    char bytes[CMSG_SPACE(sizeof(struct ucred))];
    struct cmsghdr header;
  } control = {.header = {CMSG_LEN(sizeof(struct ucred)), SOL_SOCKET, SCM_CREDENTIALS}};
  memcpy(CMSG_DATA(&control.header), &(struct ucred){pid, uid, gid}, sizeof(struct ucred));
  struct iovec part = {"x", 1};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  message.msg_control = &control, message.msg_controllen = sizeof control;
  int result = sendmsg(pair[0], &message, 0), error = errno;
  close(pair[0]), close(pair[1]);
  errno = error;
  return result;
}

static void claims(void) {
  SEE(claim(getpid(), getuid(), getgid()));
  SEE(claim(getppid(), getuid(), getgid()));
  SEE(claim(getpid(), 5, getgid()));
  SEE(claim(getpid(), getuid(), 5));
}

static void others(void) {
  int pipes[2];
  pipe(pipes);
  SEE(fcntl(pipes[0], F_SETPIPE_SZ, 1 << 20));
  SEE(fcntl(pipes[0], F_SETPIPE_SZ, 1 << 21));
  SEE(timerfd_create(CLOCK_REALTIME_ALARM, 0));
  SEE(timerfd_create(CLOCK_BOOTTIME_ALARM, 0));
  SEE(setpriority(PRIO_PROCESS, 0, -5));
  SEE(sethostname("x", 1));
  SEE(settimeofday(&(struct timeval){5, 5}, 0));
  SEE(chroot("."));
  SEE(prctl(PR_CAPBSET_DROP, 3, 0, 0, 0));
  SEE(setuid(0));
  SEE(socket(AF_INET, SOCK_RAW, 1));
}

int main(void) {
  start_in("privileges-none");
  own_network();
  umask(0);
  chmod(".", 0777);
  close(open("theirs", O_CREAT | O_WRONLY, 0644));
  close(open("file", O_CREAT | O_WRONLY, 0666));
  close(open("own", O_CREAT | O_WRONLY, 0644));
  chown("own", 1000, 1000);
  made(SOCK_STREAM, "stream", 0600);
  made(SOCK_STREAM, "open", 0666);
  made(SOCK_DGRAM, "datagram", 0644);
  made(SOCK_DGRAM, "open datagram", 0222);
  mkdir("closed", 0755);
  made(SOCK_STREAM, "closed/stream", 0666);
  chmod("closed", 0700);
  made(SOCK_STREAM, "mine", 0200);
  chown("mine", 1000, 1000);
  mq_unlink("/everett-others");
  mq_unlink("/everett-group");
  mq_open("/everett-others", O_CREAT | O_RDWR, 0600, 0);
  setegid(1000);
  mq_open("/everett-group", O_CREAT | O_RDWR, 0640, 0);
  setegid(0);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    setgid(1000);
    setuid(1000);
    ports();
    paths();
    access_times();
    options();
    queues();
    claims();
    others();
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, 0, 0);
  ports();
  paths();
  access_times();
  options();
  claims();
  mq_unlink("/everett-others");
  mq_unlink("/everett-group");
  return 0;
}

// exec:
// What travels beside bytes: open files and who sends.
#include "sockets.h"

static long send_fds(int socket, const char *text, const int *fds, int count) {
  char control[CMSG_SPACE(sizeof(int) * 8)];
  memset(control, 0, sizeof control);
  struct iovec part = {(char *)text, strlen(text)};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (count) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(header), fds, sizeof(int) * count);
  }
  return sendmsg(socket, &message, 0);
}

static int receive_fds(int socket, int *fds, int room, int flags) {
  char control[CMSG_SPACE(sizeof(int) * 8) + CMSG_SPACE(sizeof(struct ucred))], text[64];
  struct iovec part = {text, sizeof text};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  message.msg_control = control;
  message.msg_controllen = room ? CMSG_SPACE(sizeof(int) * room) : 0;
  long len = recvmsg(socket, &message, flags | MSG_DONTWAIT);
  if (len < 0) {
    printf("nothing: %s\n", error_name(errno));
    return 0;
  }
  int count = 0;
  printf("\"%.*s\"", (int)len, text);
  for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_type == SCM_RIGHTS) {
      count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      memcpy(fds, CMSG_DATA(header), count * sizeof(int));
      printf(" %d files", count);
    } else if (header->cmsg_type == SCM_CREDENTIALS) {
      struct ucred who;
      memcpy(&who, CMSG_DATA(header), sizeof who);
      printf(" from %s %d %d", who.pid == getpid() ? "self" : "another", who.uid == getuid(), who.gid == getgid());
    }
  }
  printf(", control %d, flags %x\n", (int)(message.msg_controllen > 0), message.msg_flags & ~MSG_CMSG_CLOEXEC);
  return count;
}

static void files(void) {
  puts("-- files");
  int pair[2], pipes[2], fds[8];
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  pipe(pipes);
  tell("send", send_fds(pair[0], "take this", &pipes[1], 1));
  close(pipes[1]);
  receive_fds(pair[1], fds, 4, 0);
  write(fds[0], "through", 7);
  char buffer[16];
  tell("read", read(pipes[0], buffer, 16));
  printf("close on exec %d\n", fcntl(fds[0], F_GETFD));
  tell("send", send_fds(pair[0], "again", fds, 1));
  close(fds[0]);
  receive_fds(pair[1], fds, 4, MSG_CMSG_CLOEXEC);
  printf("close on exec %d\n", fcntl(fds[0], F_GETFD));
  tell("send", send_fds(pair[0], "read away", fds, 1));
  close(fds[0]);
  tell_bytes("recv", pair[1], 20, 0);
  tell("writers are gone", read(pipes[0], buffer, 16));
  int bad = 77;
  tell("bad descriptor", send_fds(pair[0], "x", &bad, 1));
  close(pipes[0]), close(pair[0]), close(pair[1]);
}

static void several(void) {
  puts("-- several");
  int pair[2], zeros[3], fds[8];
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  for (int i = 0; i < 3; i++) zeros[i] = open("/dev/zero", O_RDONLY);
  send_fds(pair[0], "three", zeros, 3);
  printf("count %d\n", receive_fds(pair[1], fds, 4, 0));
  for (int i = 0; i < 3; i++) close(fds[i]);
  send_fds(pair[0], "only two fit", zeros, 3);
  printf("count %d\n", receive_fds(pair[1], fds, 2, 0));
  for (int i = 0; i < 2; i++) close(fds[i]);
  send_fds(pair[0], "no room", zeros, 1);
  printf("count %d\n", receive_fds(pair[1], fds, 0, 0));
  send_fds(pair[0], "plain ", NULL, 0);
  send_fds(pair[0], "with one ", zeros, 1);
  send_fds(pair[0], "after", NULL, 0);
  printf("count %d\n", receive_fds(pair[1], fds, 4, 0));
  close(fds[0]);
  printf("count %d\n", receive_fds(pair[1], fds, 4, 0));
  send_fds(pair[0], "peeked", zeros, 1);
  printf("count %d\n", receive_fds(pair[1], fds, 4, MSG_PEEK));
  char byte = 1;
  tell("read", read(fds[0], &byte, 1));
  close(fds[0]);
  printf("count %d\n", receive_fds(pair[1], fds, 4, 0));
  close(fds[0]);
  for (int i = 0; i < 3; i++) close(zeros[i]);
  close(pair[0]), close(pair[1]);
}

static void senders(void) {
  puts("-- who sends");
  int pair[2], fds[8];
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  tell("option", set_option(pair[1], SOL_SOCKET, SO_PASSCRED, 1));
  printf("told %d\n", option(pair[1], SOL_SOCKET, SO_PASSCRED));
  send(pair[0], "from parent", 11, 0);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    send(pair[0], "from child", 10, 0);
    exit(0);
  }
  waitpid(pid, NULL, 0);
  receive_fds(pair[1], fds, 8, 0);
  receive_fds(pair[1], fds, 8, 0);
  struct ucred who;
  socklen_t len = sizeof who;
  tell("peer", getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &who, &len));
  printf("self %d, user %d, length %u\n", who.pid == getpid(), who.uid == getuid(), len);
  int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  len = sizeof who;
  tell("no peer", getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len));
  printf("%d %d %d\n", who.pid, (int)who.uid, (int)who.gid);
  close(fd), close(pair[0]), close(pair[1]);
}

static void to_another_process(void) {
  puts("-- a connection for another process");
  struct sockaddr_in address;
  int server = listener(&address, 4), pair[2], fds[8];
  socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    close(server);
    struct pollfd entry = {pair[1], POLLIN, 0};
    poll(&entry, 1, -1);
    receive_fds(pair[1], fds, 1, 0);
    fflush(stdout);  // before the parent, who prints what it is sent
    write(fds[0], "from worker", 11);
    exit(0);
  }
  int client = connect_to(&address), fd = accept(server, NULL, NULL);
  send_fds(pair[0], "work", &fd, 1);
  close(fd);
  tell_bytes("client", client, 20, 0);
  tell_bytes("end", client, 20, 0);
  waitpid(pid, NULL, 0);
}

int main(void) {
  files();
  several();
  senders();
  to_another_process();
  return 0;
}

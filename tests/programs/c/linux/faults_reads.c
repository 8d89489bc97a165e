// run: --faults 1 --fault read:ECONNRESET,readv:ECONNRESET,preadv2:ECONNRESET,recvfrom:ECONNRESET,recvmmsg:ECONNRESET
// paths: 8
// Every call that reads from a connection can find it reset; one that reads from a pipe or file cannot. The bytes that
// had arrived are gone then.
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static char bytes[4];
static struct iovec part = {bytes, 1};

static int reset(int end) {
  assert(errno == ECONNRESET);
  assert(read(end, bytes, 1) == 0);
  return 0;
}

int main(void) {
  int kind, pair[2], pipes[2];
  for (kind = SOCK_STREAM; kind; kind = kind == SOCK_STREAM ? SOCK_SEQPACKET : 0) {
    assert(!socketpair(AF_UNIX, kind, 0, pair));
    for (int i = 0; i < 4; i++) assert(send(pair[0], "a", 1, 0) == 1);
    if (read(pair[1], bytes, 1) < 0) return reset(pair[1]);
    if (readv(pair[1], &part, 1) < 0) return reset(pair[1]);
    if (kind == SOCK_SEQPACKET) break;
    if (syscall(SYS_preadv2, pair[1], &part, 1, -1L, -1L, 0) < 0) return reset(pair[1]);
    if (recv(pair[1], bytes, 1, 0) < 0) return reset(pair[1]);
  }
  struct mmsghdr header = {.msg_hdr = {.msg_iov = &part, .msg_iovlen = 1}};
  if (recvmmsg(pair[1], &header, 1, 0, 0) < 0) return reset(pair[1]);
  assert(!pipe(pipes) && write(pipes[1], "b", 1) == 1 && read(pipes[0], bytes, 1) == 1);
  int file = open("/tmp/faults_reads", O_RDWR | O_CREAT | O_TRUNC, 0600);
  assert(file >= 0 && read(file, bytes, 1) == 0);
  return 0;
}

// A signal interrupts only a call that waits: a read, the sleep of the child that it waits for, a poll that finds
// nothing, and nothing else here.
// run: --faults 1 --fault *:EINTR
// paths: 4
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int interrupted;

static long checked(long result) {
    if (result < 0) {
        assert(errno == EINTR && !interrupted);
        interrupted = 1;
    }
    return result;
}

int main(void) {
    int pair[2], ends[2];
    char byte;
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0 && pipe2(ends, O_NONBLOCK) == 0);
    // None of these waits.
    assert(read(pair[0], &byte, 1) == -1 && errno == EAGAIN);
    assert(send(pair[0], "a", 1, 0) == 1 && recv(pair[1], &byte, 1, 0) == 1);
    assert(write(ends[1], "a", 1) == 1 && read(ends[0], &byte, 1) == 1);
    int file = open("/file", O_RDWR | O_CREAT, 0600);
    assert(file >= 0 && write(file, "a", 1) == 1 && pread(file, &byte, 1, 0) == 1);
    struct pollfd any = {ends[1], POLLOUT, 0};
    assert(poll(&any, 1, -1) == 1);
    any = (struct pollfd){ends[0], POLLIN, 0};
    checked(poll(&any, 1, 0));
    // The bytes come later.
    fcntl(ends[0], F_SETFL, 0);
    pid_t child = fork();
    if (child == 0) {
        usleep(1000);
        _exit(write(ends[1], "b", 1) != 1);
    }
    while (checked(read(ends[0], &byte, 1)) < 0)
        ;
    assert(byte == 'b');
    while (checked(waitpid(child, 0, 0)) < 0)
        ;
    return interrupted;
}

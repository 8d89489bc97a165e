// A connection that is broken ends the program by SIGPIPE, unless it ignores the signal or asks for none.
// run: --faults 1 --fault sendto:EPIPE --fault sendmsg:EPIPE
// paths: 5
// finding: signal 38
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static int handled;

static void handle(int signal) {
    handled = signal;
}

// A send that failed with EPIPE, after this signal or none.
static int failed(int signal) {
    if (errno != EPIPE || handled != signal)
        abort();
    return 0;
}

int main(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
        return 1;
    signal(SIGPIPE, handle);
    if (send(ends[0], "a", 1, 0) != 1)
        return failed(SIGPIPE);
    if (send(ends[0], "b", 1, MSG_NOSIGNAL) != 1)
        return failed(0);
    struct iovec part = {"c", 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (sendmsg(ends[0], &message, MSG_NOSIGNAL) != 1)
        return failed(0);
    signal(SIGPIPE, SIG_DFL);
    if (sendmsg(ends[0], &message, 0) != 1)
        abort();
    return 0;
}

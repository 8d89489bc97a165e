// A send or write that does not block may find no room; one that blocks never does.
// run: --faults 1 --fault sendto:EAGAIN --fault write:EAGAIN
// paths: 4
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    int pair[2], ends[2];
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(ends) == 0);
    assert(send(pair[0], "a", 1, 0) == 1 && write(ends[1], "a", 1) == 1 && write(pair[0], "a", 1) == 1);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    int failed = 0;
    if (send(pair[0], "b", 1, 0) != 1)
        failed |= errno == EAGAIN ? 1 : 100;
    if (write(ends[1], "b", 1) != 1)
        failed |= errno == EAGAIN ? 2 : 100;
    if (write(pair[0], "b", 1) != 1)
        failed |= errno == EAGAIN ? 4 : 100;
    return failed;
}

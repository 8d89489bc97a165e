// A connection that was reported as broken or reset stays so, at both ends.
// run: --faults 1 --fault sendto:EPIPE,sendto:ECONNRESET,recvfrom:ECONNRESET
// paths: 8
#include <assert.h>
#include <errno.h>
#include <everett.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

static void connected(int pair[2]) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert(bind(listener, (struct sockaddr *)&at, len) == 0 && listen(listener, 1) == 0);
    assert(getsockname(listener, (struct sockaddr *)&at, &len) == 0);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    assert(connect(pair[0], (struct sockaddr *)&at, len) == 0);
    pair[1] = accept(listener, 0, 0);
    assert(pair[1] >= 0 && close(listener) == 0);
}

static int events(int fd) {
    struct pollfd one = {fd, POLLIN | POLLOUT, 0};
    return poll(&one, 1, 0) == 1 ? one.revents : 0;
}

// What is true after a call at the first end reported that the connection is broken.
static int broken(int pair[2]) {
    char byte;
    assert(errno == EPIPE || errno == ECONNRESET);
    assert(events(pair[0]) & POLLHUP && events(pair[1]) & POLLHUP);
    assert(recv(pair[0], &byte, 1, 0) == 0);
    assert(send(pair[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    assert(recv(pair[1], &byte, 1, 0) == -1 && errno == ECONNRESET);
    assert(recv(pair[1], &byte, 1, 0) == 0);
    assert(send(pair[1], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    return 0;
}

int main(void) {
    int pair[2];
    char byte;
    if (everett_choose(2, "tcp"))
        connected(pair);
    else
        assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    if (send(pair[0], "a", 1, MSG_NOSIGNAL) != 1)
        return broken(pair);
    if (recv(pair[1], &byte, 1, 0) != 1) {
        int turned[] = {pair[1], pair[0]};
        return broken(turned);
    }
    assert(byte == 'a' && !(events(pair[0]) & POLLHUP));
    assert(write(pair[0], "b", 1) == 1 && read(pair[1], &byte, 1) == 1 && byte == 'b');
    // The end of the stream has arrived, and no reset comes after it.
    assert(close(pair[0]) == 0);
    return recv(pair[1], &byte, 1, 0) > 0;
}

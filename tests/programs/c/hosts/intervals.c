// Sends of non-blocking sockets, and select, fail at intervals.
// run: --socket-block-interval 2 --select-fail-interval 3
// paths: 1
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void) {
    int pair[2], ends[2];
    assert(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(ends) == 0);
    for (int i = 0; i < 4; i++)
        assert(write(pair[0], "a", 1) == 1 && write(ends[1], "a", 1) == 1);
    fcntl(pair[0], F_SETFL, O_NONBLOCK);
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLOUT | EPOLLET};
    assert(epoll_ctl(epoll, EPOLL_CTL_ADD, pair[0], &event) == 0 && epoll_wait(epoll, &event, 1, 0) == 1);
    assert(send(pair[0], "a", 1, 0) == 1);
    while (epoll_wait(epoll, &event, 1, 0) == 1) {
    }
    assert(write(pair[0], "a", 1) == -1 && errno == EAGAIN);
    assert(epoll_wait(epoll, &event, 1, 0) == 1);
    assert(write(pair[0], "a", 1) == 1);
    assert(send(pair[0], "a", 1, 0) == -1 && errno == EAGAIN);
    static const int errors[] = {0, 0, EINTR, 0, 0, ENOMEM, 0, 0, EINTR};
    for (int i = 0; i < 9; i++) {
        fd_set set;
        FD_ZERO(&set);
        FD_SET(ends[0], &set);
        int result = select(ends[0] + 1, &set, NULL, NULL, NULL);
        assert(errors[i] ? result == -1 && errno == errors[i] : result == 1);
    }
    return 0;
}

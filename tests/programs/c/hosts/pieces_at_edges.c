// A reader that is told of edges only, and takes a short read for the last: the rest arrives as data does, with an edge.
// run: --fragment 3
// paths: 8
#include <everett.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static char buffer[64];

// Reads until a read gets fewer bytes than it could, as servers do.
static int take(int from) {
    ssize_t got = read(from, buffer, sizeof buffer);
    return got < 0 ? 0 : (int)got;
}

static void receive(int to, int from) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    int epoll = epoll_create1(0);
    epoll_ctl(epoll, EPOLL_CTL_ADD, from, &event);
    write(to, "abc", 3);
    for (int got = 0; got < 3; got += take(from))
        if (epoll_wait(epoll, &event, 1, 1000) != 1)
            everett_report("no edge for the rest");
    // All of it is there: no edge any more.
    if (epoll_wait(epoll, &event, 1, 0) != 0)
        everett_report("an edge for nothing");
}

int main(void) {
    int ends[2];
    if (everett_choose(2, "kind"))
        socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    else {
        pipe(ends);
        int from = ends[0];
        ends[0] = ends[1];
        ends[1] = from;
    }
    receive(ends[0], ends[1]);
    return 0;
}

// An injected failure is one that Linux has for this command, these flags and this kind of descriptor.
// run: --faults 1
// paths: 22
#include <errno.h>
#include <everett.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

// A call that failed must have failed with one of these errors (0 for none).
static int failed(long result, int first, int second) {
    if (result >= 0)
        return 0;
    if (errno != first && errno != second)
        everett_report("a failure that Linux does not have");
    return 1;
}

static int descriptors(void) {
    int copy = fcntl(0, F_DUPFD, 10);
    if (failed(copy, EMFILE, 0))
        return 1;
    return failed(fcntl(0, F_GETFL), 0, 0) + failed(fcntl(0, F_SETFL, O_NONBLOCK), 0, 0)
        + failed(fcntl(0, F_GETFD), 0, 0) + failed(fcntl(0, F_SETFD, 0), 0, 0)
        + failed(dup2(0, copy), ENOMEM, 0);
}

static int locks(void) {
    int file = open("/f", O_RDWR | O_CREAT, 0600);
    if (file < 0)
        return 1;
    struct flock lock = {.l_type = F_WRLCK};
    return failed(flock(file, LOCK_EX), 0, 0) + failed(flock(file, LOCK_UN), 0, 0)
        + failed(flock(file, LOCK_EX | LOCK_NB), EAGAIN, 0) + failed(fcntl(file, F_SETLK, &lock), ENOLCK, 0);
}

static int polls(void) {
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    int ends[2];
    if (epoll < 0 || pipe(ends) < 0)
        return 1;
    if (failed(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event), ENOMEM, ENOSPC))
        return 1;
    return failed(epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event), 0, 0)
        + failed(epoll_ctl(epoll, EPOLL_CTL_DEL, ends[0], 0), 0, 0) + failed(write(ends[1], "a", 1), 0, 0);
}

static int sockets(void) {
    int udp = socket(AF_INET, SOCK_DGRAM, 0);
    if (udp < 0)
        return 1;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return failed(sendto(udp, "a", 1, 0, (struct sockaddr *)&to, sizeof to), ENOBUFS, 0);
}

int main(void) {
    static int (*const parts[])(void) = {descriptors, locks, polls, sockets};
    everett_faults_enable();
    return parts[everett_choose(4, "part")]();
}

// A chain of sockets, each in transit over the next: closing the last closes all.
// native: 0
// exec: 0
#include "escape.h"
#include <sys/socket.h>

static int pass(int over, const int *sockets) {
    char byte = 0, space[CMSG_SPACE(8)] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(8);
    memcpy(CMSG_DATA(head), sockets, 8);
    return sendmsg(over, &message, 0) == 1;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    int inner[2], outer[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, inner)) return 1;
    for (int i = 0; i < 15000; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, outer) || !pass(outer[0], inner)) return 1;
        close(inner[0]);
        close(inner[1]);
        memcpy(inner, outer, sizeof inner);
    }
    close(inner[0]);
    close(inner[1]);
    return end();
}

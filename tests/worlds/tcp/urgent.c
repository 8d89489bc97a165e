/* Urgent data between hosts.
 *
 *     urgent            the server: ends with 0 if the mark is where it belongs
 *     urgent ADDRESS    the client */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(7)};
    if (argc == 2) {
        inet_pton(AF_INET, argv[1], &at.sin_addr);
        if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0)
            return 1;
        return send(fd, "abX", 3, MSG_OOB) != 3 || send(fd, "cd", 2, 0) != 2;
    }
    char text[8];
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 1) != 0)
        return 2;
    int peer = accept(fd, NULL, NULL), is_there = 0;
    struct pollfd entry = {.fd = peer, .events = POLLPRI};
    if (poll(&entry, 1, -1) != 1 || !(entry.revents & POLLPRI))
        return 3;
    if (recv(peer, text, 8, MSG_OOB) != 1 || text[0] != 'X')
        return 4;
    if (recv(peer, text, 8, 0) != 2 || memcmp(text, "ab", 2))
        return 5;
    if (ioctl(peer, SIOCATMARK, &is_there) != 0 || !is_there)
        return 6;
    return recv(peer, text, 8, MSG_WAITALL) != 2 || memcmp(text, "cd", 2) ? 7 : 0;
}

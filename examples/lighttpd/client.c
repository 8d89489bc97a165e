/* A client of a web server: sends one request and reads what comes back until the server has nothing more to say.
 *
 *     client ADDRESS PORT 'GET /name HTTP/1.0' [PIECES]
 *
 * The request goes out in PIECES parts of about the same length, 10 ms apart. Exit codes: 0 if there was an answer that
 * begins like one, 1 if there was none, 2 if there was no connection, 3 if the answer was something else. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int connected_to(const char *address, const char *port) {
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || inet_pton(AF_INET, address, &server.sin_addr) != 1
        || connect(fd, (struct sockaddr *)&server, sizeof server) != 0)
        return -1;
    return fd;
}

static int send_in_pieces(int fd, const char *bytes, size_t size, size_t pieces) {
    for (size_t i = 0; i < pieces; i++) {
        size_t from = size * i / pieces, to = size * (i + 1) / pieces;
        if (i > 0)
            nanosleep(&(struct timespec){0, 10000000}, NULL);
        if (send(fd, bytes + from, to - from, MSG_NOSIGNAL) != (ssize_t)(to - from))
            return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    char request[512], answer[8192];
    if (argc < 4 || strlen(argv[3]) + 5 > sizeof request) {
        fprintf(stderr, "usage: %s ADDRESS PORT 'GET /name HTTP/1.0' [PIECES]\n", argv[0]);
        return 2;
    }
    int pieces = argc > 4 ? atoi(argv[4]) : 1;
    int fd = connected_to(argv[1], argv[2]);
    if (fd < 0) {
        perror("connect");
        return 2;
    }
    int length = snprintf(request, sizeof request, "%s\r\n\r\n", argv[3]);
    if (!send_in_pieces(fd, request, (size_t)length, pieces < 1 ? 1 : (size_t)pieces))
        return 1;
    shutdown(fd, SHUT_WR);
    size_t size = 0;
    ssize_t got;
    while (size < sizeof answer && (got = recv(fd, answer + size, sizeof answer - size, 0)) > 0)
        size += (size_t)got;
    if (size == 0)
        return 1;
    return size >= 9 && memcmp(answer, "HTTP/1.", 7) == 0 ? 0 : 3;
}

/* Asks a proxy for a page of a web server, with one header of its own.
 *
 *     client ADDRESS PORT URL HEADER
 *
 * Exit codes: 0 if there was an answer that begins like one, 1 if there was none, 2 if there was no connection, 3 if
 * the answer was something else. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    char request[512], answer[4096];
    if (argc < 5)
        return 2;
    struct sockaddr_in proxy = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || inet_pton(AF_INET, argv[1], &proxy.sin_addr) != 1
        || connect(fd, (struct sockaddr *)&proxy, sizeof proxy) != 0) {
        perror("connect");
        return 2;
    }
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n%s\r\n\r\n", argv[3], argv[4]);
    if (length >= (int)sizeof request || send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
        return 1;
    size_t size = 0;
    ssize_t got;
    while (size < sizeof answer && (got = recv(fd, answer + size, sizeof answer - size, 0)) > 0)
        size += (size_t)got;
    if (size == 0)
        return 1;
    return size >= 9 && memcmp(answer, "HTTP/1.", 7) == 0 ? 0 : 3;
}

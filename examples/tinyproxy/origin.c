/* A web server for one request: it reads up to the empty line and answers with a small page. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char page[] = "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc";

int main(void) {
    char request[2048];
    size_t size = 0;
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_port = htons(80)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&own, sizeof own) != 0 || listen(listener, 4) != 0)
        return 1;
    int fd = accept(listener, NULL, NULL);
    while (size < sizeof request) {
        ssize_t got = recv(fd, request + size, sizeof request - size, 0);
        if (got <= 0)
            return 2;
        size += (size_t)got;
        if (size >= 4 && memcmp(request + size - 4, "\r\n\r\n", 4) == 0)
            break;
    }
    send(fd, page, sizeof page - 1, MSG_NOSIGNAL);
    close(fd);
    return 0;
}

/* A web server: counts its requests in all connections, one connection after the other, and forgets that a request can
 * have no path. */
#include <arpa/inet.h>
#include <everett.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int requests;

static void serve(int fd) {
    char request[1024];
    size_t got = 0;
    for (;;) {
        request[got] = 0;
        char *end = strstr(request, "\r\n\r\n");
        if (!end) {
            ssize_t count = recv(fd, request + got, sizeof request - 1 - got, 0);
            if (count <= 0)
                return;
            got += (size_t)count;
            continue;
        }
        char path[64] = "", answer[128];
        sscanf(request, "GET %63s", path);
        everett_assert(path[0] == '/');
        requests++;
        int size = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\n\r\n%d %s\n", requests, path);
        send(fd, answer, (size_t)size, 0);
        got -= (size_t)(end + 4 - request);
        memmove(request, end + 4, got);
    }
}

int main(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(80)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&here, sizeof here) != 0 || listen(listener, 5) != 0)
        return 2;
    for (int i = 0; i < 2; i++) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            return 3;
        serve(fd);
        close(fd);
    }
    printf("%d requests\n", requests);
    return 0;
}

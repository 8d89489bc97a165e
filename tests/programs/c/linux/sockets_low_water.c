// exec:
// Less than SO_RCVLOWAT is returned when a wait is over, at the end of the stream, or where nobody waits.
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

static void show(const char *what, ssize_t got) {
    printf("%s: %zd %s\n", what, got, got < 0 ? strerror(errno) : "");
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), least = 8;
    bind(listener, (struct sockaddr *)&address, size);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&address, &size);
    connect(client, (struct sockaddr *)&address, size);
    int server = accept(listener, 0, 0);
    setsockopt(server, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
    char bytes[32];
    struct pollfd poll_ = {server, POLLIN, 0};
    show("send", send(client, "ab", 2, 0));
    show("poll", poll(&poll_, 1, 20));
    show("peek", recv(server, bytes, sizeof bytes, MSG_DONTWAIT | MSG_PEEK));
    show("now", recv(server, bytes, sizeof bytes, MSG_DONTWAIT));
    show("again", recv(server, bytes, sizeof bytes, MSG_DONTWAIT));
    struct timeval time = {0, 30000};
    setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    show("send", send(client, "cde", 3, 0));
    show("time", recv(server, bytes, sizeof bytes, 0));
    show("nothing", recv(server, bytes, sizeof bytes, 0));
    show("send", send(client, "f", 1, 0));
    close(client);
    usleep(10000);
    show("last", recv(server, bytes, sizeof bytes, 0));
    show("end", recv(server, bytes, sizeof bytes, 0));
    return 0;
}

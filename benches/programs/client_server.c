// A small server and a client: 20 requests, each answered.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void serve(int listener) {
    int fd = accept(listener, NULL, NULL);
    char line[64];
    ssize_t got;
    while ((got = read(fd, line, sizeof line)) > 0) {
        for (ssize_t i = 0; i < got; i++) line[i] ^= 0x20;
        if (write(fd, line, got) != got) _exit(2);
    }
    _exit(0);
}

int main(void) {
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(8080), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    if (bind(listener, (struct sockaddr *)&at, sizeof at) || listen(listener, 5)) return 1;
    if (fork() == 0) serve(listener);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&at, sizeof at)) return 1;
    for (int i = 0; i < 20; i++) {
        char c = 'a' + i;
        if (write(fd, &c, 1) != 1 || read(fd, &c, 1) != 1 || c != 'A' + i) return 3;
    }
    close(fd);
    int status;
    wait(&status);
    return WEXITSTATUS(status);
}

/* Answers questions over UDP, corrected: every question is answered, and the server ends when it has had a confirmation or
 * when nobody has asked for two seconds.
 *
 *     server PORT */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argc > 1 ? argv[1] : "7000"))};
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0) {
        perror("socket");
        return 2;
    }
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, 2000) == 0) {
            printf("quiet\n");
            return 0;
        }
        struct sockaddr_in client;
        socklen_t client_size = sizeof client;
        char message;
        if (recvfrom(fd, &message, 1, 0, (struct sockaddr *)&client, &client_size) != 1)
            continue;
        if (message == '?')
            sendto(fd, "!", 1, 0, (struct sockaddr *)&client, client_size);
        if (message == '.') {
            printf("confirmed\n");
            return 0;
        }
    }
}

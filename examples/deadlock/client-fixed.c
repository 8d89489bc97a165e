/* Asks one question over UDP, corrected: asks again when no answer comes within 200 ms, ten times at most.
 *
 *     client ADDRESS PORT */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: %s ADDRESS PORT\n", argv[0]);
        return 2;
    }
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1) {
        perror("socket");
        return 2;
    }
    for (int attempt = 0; attempt < 10; attempt++) {
        sendto(fd, "?", 1, 0, (struct sockaddr *)&server, sizeof server);
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        char message = 0;
        if (poll(&wait, 1, 200) == 1 && recv(fd, &message, 1, 0) == 1 && message == '!') {
            sendto(fd, ".", 1, 0, (struct sockaddr *)&server, sizeof server);
            printf("answered\n");
            return 0;
        }
    }
    fprintf(stderr, "no answer\n");
    return 1;
}

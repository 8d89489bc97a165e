/* Answers one question over UDP, and waits until the client has confirmed the answer.
 *
 *     server PORT
 *
 * The mistake: neither side has a time-out. Whichever packet is lost, both wait for the other. */
#include <arpa/inet.h>
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
    struct sockaddr_in client;
    socklen_t client_size = sizeof client;
    char message;
    do {
        if (recvfrom(fd, &message, 1, 0, (struct sockaddr *)&client, &client_size) != 1)
            return 1;
    } while (message != '?');
    sendto(fd, "!", 1, 0, (struct sockaddr *)&client, client_size);
    do {
        if (recvfrom(fd, &message, 1, 0, NULL, NULL) != 1)
            return 1;
    } while (message != '.');
    printf("confirmed\n");
    return 0;
}

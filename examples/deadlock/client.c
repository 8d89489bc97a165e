/* Asks one question over UDP, and confirms the answer.
 *
 *     client ADDRESS PORT
 *
 * The mistake: see server.c. */
#include <arpa/inet.h>
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
    if (fd < 0 || inet_pton(AF_INET, argv[1], &server.sin_addr) != 1
        || connect(fd, (struct sockaddr *)&server, sizeof server) != 0) {
        perror("socket");
        return 2;
    }
    char message = 0;
    send(fd, "?", 1, 0);
    while (message != '!')
        if (recv(fd, &message, 1, 0) != 1)
            return 1;
    send(fd, ".", 1, 0);
    printf("answered\n");
    return 0;
}

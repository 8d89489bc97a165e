/* Registers a name and asks for it; every packet that it sends is in order.
 *
 *     client ADDRESS PORT */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    static const char set[] = "S\004name\003bob", get[] = "G\004name";
    char answer[64];
    send(fd, set, sizeof set - 1, 0);
    if (recv(fd, answer, sizeof answer, 0) < 0)
        return 1;
    send(fd, get, sizeof get - 1, 0);
    ssize_t size = recv(fd, answer, sizeof answer, 0);
    printf("%.*s\n", (int)(size < 0 ? 0 : size), answer);
    return size == 3 && memcmp(answer, "bob", 3) == 0 ? 0 : 1;
}

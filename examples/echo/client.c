/* A client of the echo server: sends packets one after the other, waits for each to come back, and compares.
 *
 *     client ADDRESS PORT COUNT SIZE [SYMBOLIC]
 *
 * The first SYMBOLIC packets may be anything.
 * It waits without a time-out: a packet that is lost on either way leaves it waiting. */
#include <arpa/inet.h>
#include <everett.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MOST_BYTES = 65536 };

int main(int argc, char **argv) {
    static char packet[MOST_BYTES], echo[MOST_BYTES];
    if (argc < 5) {
        fprintf(stderr, "usage: %s ADDRESS PORT COUNT SIZE [SYMBOLIC]\n", argv[0]);
        return 2;
    }
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[2]))};
    int count = atoi(argv[3]), size = atoi(argv[4]), symbolic = argc > 5 ? atoi(argv[5]) : 0;
    if (inet_pton(AF_INET, argv[1], &server.sin_addr) != 1 || size < 1 || size > MOST_BYTES)
        return 2;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&server, sizeof server) != 0) {
        perror("socket");
        return 2;
    }
    for (int i = 0; i < count; i++) {
        memset(packet, 'a' + i % 26, (size_t)size);
        if (i < symbolic)
            everett_make_symbolic(packet, (size_t)size, "packet");
        if (send(fd, packet, (size_t)size, 0) != size) {
            perror("send");
            return 1;
        }
        if (recv(fd, echo, sizeof echo, 0) != size || memcmp(packet, echo, (size_t)size) != 0) {
            fprintf(stderr, "packet %d came back changed\n", i);
            return 1;
        }
    }
    printf("%d packets\n", count);
    return 0;
}

/* A wide value goes byte by byte, in an order that depends on whether a call fails.
 *
 *     halves            the receiver: is the byte that comes first odd?
 *     halves ADDRESS    the sender: the low byte of its value is even, the others may be anything */
#include <arpa/inet.h>
#include <everett.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORT = 7000 };

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    unsigned char bytes[2] = {0, 0};
    if (argc == 2) {
        static volatile unsigned wide;
        unsigned any;
        everett_make_symbolic(&any, sizeof any, "any");
        wide = any * 6;
        inet_pton(AF_INET, argv[1], &address.sin_addr);
        int first = dup(fd) < 0;
        for (int i = 0; i < 2; i++)
            sendto(fd, (char *)&wide + (first ^ i), 1, 0, (struct sockaddr *)&address, sizeof address);
        return 0;
    }
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 99;
    for (int i = 0; i < 2; i++)
        if (recv(fd, bytes + i, 1, 0) != 1)
            return 99;
    if (bytes[0] & 1) {
        puts("odd");
        return 1;
    }
    return 0;
}

/* A lamp that shows its colour, and somebody who turns it on and off again.
 *
 *     light ADDRESS COLOUR     sends the colour, which may be anything, and 0
 *     light                    shows what comes */
#include <arpa/inet.h>
#include <everett.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { PORT = 7000 };

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    unsigned char colour = 0;
    if (argc > 2) {
        inet_pton(AF_INET, argv[1], &address.sin_addr);
        sendto(fd, argv[2], 1, 0, (struct sockaddr *)&address, sizeof address);
        sendto(fd, &colour, 1, 0, (struct sockaddr *)&address, sizeof address);
        return 0;
    }
    struct timeval second = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 1;
    while (recv(fd, &colour, 1, 0) == 1)
        everett_expose("0", "colour", &colour, 1);
    return 0;
}

/* Tells every other host one thing, and shows how many of them it has heard from within 50 ms.
 *
 *     gossip NUMBER HOSTS     its own number, and how many hosts have the addresses from 10.0.0.1 on */
#include <arpa/inet.h>
#include <everett.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PORT = 7000 };

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct timeval wait = {.tv_usec = 50000};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (argc < 3 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 2;
    int32_t heard = 0;
    uint8_t said = 0;
    usleep(1000); /* all others listen by then */
    for (int host = 0; host < atoi(argv[2]); host++) {
        if (host == atoi(argv[1]))
            continue;
        address.sin_addr.s_addr = htonl(0x0a000001u + (unsigned)host);
        sendto(fd, &said, 1, 0, (struct sockaddr *)&address, sizeof address);
    }
    while (recv(fd, &said, 1, 0) == 1)
        heard++;
    everett_expose("0", "heard", &heard, sizeof heard);
    return 0;
}

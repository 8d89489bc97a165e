/* Sends datagrams, or counts those that come within a second, and shows how many there were.
 *
 *     count ADDRESS     sends three
 *     count             counts */
#include <arpa/inet.h>
#include <everett.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>

enum { PORT = 7000, COUNT = 3 };

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    unsigned char packets = 0;
    if (argc > 1) {
        inet_pton(AF_INET, argv[1], &address.sin_addr);
        for (; packets < COUNT; packets++)
            sendto(fd, &packets, 1, 0, (struct sockaddr *)&address, sizeof address);
    } else {
        struct timeval second = {.tv_sec = 1};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
        if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
            return 1;
        unsigned char packet;
        while (recv(fd, &packet, 1, 0) == 1)
            packets++;
    }
    everett_expose("1", "packets", &packets, 1);
    return 0;
}

/* Asks by datagrams: exits with how often it had to. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

int main(int argc, char **argv) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(7000)};
    struct timeval wait = {.tv_usec = 20000};
    char byte = 1;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (argc == 2) {
        if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
            return 9;
        for (;;) {
            struct sockaddr_in from;
            socklen_t length = sizeof from;
            if (recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&from, &length) == 1)
                sendto(fd, &byte, 1, 0, (struct sockaddr *)&from, length);
        }
    }
    address.sin_addr.s_addr = inet_addr(argv[2]);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    for (int tries = 1; tries < 5; tries++) {
        sendto(fd, &byte, 1, 0, (struct sockaddr *)&address, sizeof address);
        if (recv(fd, &byte, 1, 0) == 1)
            return tries;
    }
    return 100;
}

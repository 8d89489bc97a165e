/* A register that keeps a byte in a file, and its client.
 *
 *     register sync|lazy      the register; `sync`: what is acknowledged is on the disk
 *     register ADDRESS        the client: sets the byte, reads it when that is acknowledged; asks again where it gets no answer */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PORT = 7000, VALUE = 42, MOST_TRIES = 20 };

static int serve(int fd, int syncs) {
    unsigned char value = 0;
    int file = open("value", O_RDWR | O_CREAT, 0644);
    if (file < 0 || pread(file, &value, 1, 0) < 0)
        return 2;
    for (;;) {
        unsigned char packet[2];
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        if (recvfrom(fd, packet, sizeof packet, 0, (struct sockaddr *)&from, &size) != sizeof packet)
            return 2;
        if (packet[0] == 'S') {
            value = packet[1];
            if (pwrite(file, &value, 1, 0) != 1 || (syncs && fsync(file) != 0))
                return 2;
        }
        packet[1] = value;
        sendto(fd, packet, sizeof packet, 0, (struct sockaddr *)&from, size);
    }
}

static int ask(int fd, char what, unsigned char value) {
    for (int i = 0; i < MOST_TRIES; i++) {
        unsigned char packet[2] = {(unsigned char)what, value}, answer[2];
        send(fd, packet, sizeof packet, 0);
        while (recv(fd, answer, sizeof answer, 0) == sizeof answer)
            if (answer[0] == what)
                return answer[1];
    }
    return -1;
}

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct timeval wait = {.tv_usec = 100000};
    if (argc != 2)
        return 2;
    if (strcmp(argv[1], "sync") == 0 || strcmp(argv[1], "lazy") == 0) {
        if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
            return 2;
        return serve(fd, argv[1][0] == 's');
    }
    inet_pton(AF_INET, argv[1], &address.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0 || ask(fd, 'S', VALUE) != VALUE)
        return 3;
    return ask(fd, 'G', 0) == VALUE ? 0 : 1;
}

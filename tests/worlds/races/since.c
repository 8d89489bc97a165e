/* How long was it on its way? Senders say when they sent; nothing arrives before its way is behind it.
 *
 *     since COUNT LEAST      the receiver: ends with how many of COUNT packets took less than LEAST microseconds
 *     since ADDRESS          a sender */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { PORT = 7000 };

static long long now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    long long sent;
    if (argc == 2) {
        inet_pton(AF_INET, argv[1], &address.sin_addr);
        sent = now_us();
        return sendto(fd, &sent, sizeof sent, 0, (struct sockaddr *)&address, sizeof address) != sizeof sent;
    }
    if (argc != 3 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 99;
    int early = 0;
    for (int i = atoi(argv[1]); i > 0; i--) {
        if (recv(fd, &sent, sizeof sent, 0) != sizeof sent)
            return 99;
        early += now_us() - sent < atoi(argv[2]);
    }
    return early;
}

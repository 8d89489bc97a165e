/* A watch that sends its count every 10 ms, and somebody who shows the last count that came.
 *
 *     beat ADDRESS     sends five counts
 *     beat             shows what comes */
#include <arpa/inet.h>
#include <everett.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

enum { PORT = 7000, COUNT = 5 };

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    if (argc > 1) {
        inet_pton(AF_INET, argv[1], &address.sin_addr);
        for (unsigned char beat = 1; beat <= COUNT; beat++) {
            nanosleep(&pause, 0);
            everett_expose("0", "beat", &beat, 1);
            sendto(fd, &beat, 1, 0, (struct sockaddr *)&address, sizeof address);
        }
        return 0;
    }
    struct timeval second = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 1;
    unsigned char beat;
    while (recv(fd, &beat, 1, 0) == 1)
        everett_expose("0", "beat", &beat, 1);
    return 0;
}

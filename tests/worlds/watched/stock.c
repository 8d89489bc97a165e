/* A shop that knows nothing of being looked at: how much it has is in a variable of its own.
 *
 *     stock ADDRESS COUNT [BYTE]     orders so many times, one piece each, or what the byte says
 *     stock                          sells what is ordered */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PORT = 7000, PIECES = 3 };

struct shelf {
    char name[12];
    signed char pieces;
    struct shelf *next;
};

static struct shelf back = {"back", 7, 0};
struct shelf shelves[2] = {{"apples", PIECES, 0}, {"pears", PIECES, &back}};
struct shelf *last;
int ordered;

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    signed char wanted = 1;
    if (argc > 2) {
        if (argc > 3)
            wanted = argv[3][0];
        inet_pton(AF_INET, argv[1], &address.sin_addr);
        for (int left = atoi(argv[2]); left > 0; left--) {
            ordered++;
            sendto(fd, &wanted, 1, 0, (struct sockaddr *)&address, sizeof address);
        }
        return 0;
    }
    struct timeval second = {.tv_sec = 1};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 1;
    while (recv(fd, &wanted, 1, 0) == 1) {
        shelves[1].pieces -= wanted;
        back.pieces++;
        last = &shelves[1];
    }
    return 0;
}

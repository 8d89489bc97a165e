/* Who writes last? Two writers send a value each to a register, which keeps the last one.
 *
 *     last                 the register: ends with what it has after two values
 *     last ADDRESS VALUE   a writer */
#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { PORT = 7000, WRITERS = 2 };

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    unsigned char value = 0;
    if (argc == 3) {
        inet_pton(AF_INET, argv[1], &address.sin_addr);
        value = (unsigned char)atoi(argv[2]);
        return sendto(fd, &value, 1, 0, (struct sockaddr *)&address, sizeof address) != 1;
    }
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 99;
    for (int i = 0; i < WRITERS; i++)
        if (recv(fd, &value, 1, 0) != 1)
            return 99;
    return value;
}

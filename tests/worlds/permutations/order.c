/* In which order do packets arrive?
 *
 *     order COUNT                 the receiver: ends with the values of COUNT packets, two bits each, the last one lowest
 *     order ADDRESS VALUE ...     a sender */
#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { PORT = 7000 };

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    unsigned char value = 0, all = 0;
    for (int at = 2; at < argc; at++) {
        inet_pton(AF_INET, argv[1], &address.sin_addr);
        value = (unsigned char)atoi(argv[at]);
        if (sendto(fd, &value, 1, 0, (struct sockaddr *)&address, sizeof address) != 1)
            return 1;
    }
    if (argc > 2)
        return 0;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 1;
    for (int i = atoi(argv[1]); i > 0; i--) {
        if (recv(fd, &value, 1, 0) != 1)
            return 1;
        all = (unsigned char)(all << 2 | value);
    }
    /* Of four, 2, 3, 1, 0: three of them overtake others. */
    assert(atoi(argv[1]) != 4 || all != 0xb4);
    return all;
}

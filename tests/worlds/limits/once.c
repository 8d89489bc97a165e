/* One packet, perhaps twice.
 *
 *     once            receives it
 *     once ADDRESS    sends it */
#include <arpa/inet.h>
#include <sys/socket.h>

enum { PORT = 7000 };

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    char byte = 0;
    if (argc > 1) {
        inet_pton(AF_INET, argv[1], &address.sin_addr);
        return sendto(fd, &byte, 1, 0, (struct sockaddr *)&address, sizeof address) != 1;
    }
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 99;
    return recv(fd, &byte, 1, 0) != 1;
}

/* Asks for an option that no socket has, and waits for something that never comes.
 *
 *     odd            waits
 *     odd ADDRESS    sends it something */
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
    socklen_t size = 1;
    getsockopt(fd, SOL_SOCKET, 999, &byte, &size);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0)
        return 99;
    for (;;)
        recv(fd, &byte, 1, 0);
}

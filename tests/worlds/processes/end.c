/* Processes that end in different ways.
 *
 *     end read     with the first byte of standard input, 255 where there is none
 *     end large    with 1 where that byte is larger than 9, else with 0
 *     end die      by a signal
 *     end wait     never: it waits for what nobody sends */
#include <arpa/inet.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    unsigned char byte;
    if (strcmp(how, "read") == 0)
        return read(0, &byte, 1) == 1 ? byte : 255;
    if (strcmp(how, "large") == 0)
        return read(0, &byte, 1) == 1 ? byte > 9 : 255;
    if (strcmp(how, "die") == 0)
        raise(SIGTERM);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(7000)};
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    if (bind(fd, (struct sockaddr *)&here, sizeof here) != 0)
        return 2;
    return recv(fd, &byte, 1, 0) == 1;
}

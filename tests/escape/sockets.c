// The real network: connections to a port where somebody listens, by all families; netlink, raw and packet sockets.
// native: 0
// exec: 0
#include "escape.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

int main(int argc, char **argv) {
    begin(argc, argv);
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(real_port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(real_port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int stream = socket(AF_INET, SOCK_STREAM, 0), other = socket(AF_INET6, SOCK_STREAM, 0);
    must(connect(stream, (struct sockaddr *)&four, sizeof four) < 0, "TCP");
    must(connect(other, (struct sockaddr *)&six, sizeof six) < 0, "TCP over IPv6");
    int datagram = socket(AF_INET, SOCK_DGRAM, 0);
    sendto(datagram, "x", 1, 0, (struct sockaddr *)&four, sizeof four);
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    snprintf(local.sun_path, sizeof local.sun_path, "%s.socket", real_file);
    must(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&local, sizeof local) < 0, "a socket by its path");
    int length = sprintf(local.sun_path + 1, "everett-escape-%d", real_port);
    local.sun_path[0] = 0;
    must(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&local, 3 + length) < 0, "an abstract socket");
    for (int family = 0; family < 50; family++)
        for (int kind = 0; kind < 12; kind++)
            for (int protocol = 0; protocol < 3; protocol++) {
                int fd = socket(family, kind, protocol);
                if (fd < 0) continue;
                connect(fd, (struct sockaddr *)&four, sizeof four);
                sendto(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&four, sizeof four);
                close(fd);
            }
    return end();
}

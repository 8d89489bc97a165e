/* Routers say hello to their group: IP protocol 89 to 224.0.0.5, as in OSPF.
 *
 *     hello COUNT       joins the group, says hello once, and hears COUNT other routers
 *     hello             does not join: must hear nothing */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
    int fd = socket(AF_INET, SOCK_RAW, 89), count = argc > 1 ? atoi(argv[1]) : 0;
    if (fd < 0)
        return 1;
    struct sockaddr_in group = {.sin_family = AF_INET, .sin_addr = {inet_addr("224.0.0.5")}};
    struct ip_mreqn join = {.imr_multiaddr = group.sin_addr};
    unsigned char loop = 0, hello[4] = {2, 1, 0, 4};
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    if (count == 0)
        return poll(&entry, 1, 1000) == 0 ? 0 : 2;
    if (setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof join) != 0 ||
        setsockopt(fd, IPPROTO_IP, IP_MULTICAST_LOOP, &loop, 1) != 0)
        return 3;
    usleep(100000);
    if (sendto(fd, hello, sizeof hello, 0, (struct sockaddr *)&group, sizeof group) != sizeof hello)
        return 4;
    in_addr_t heard = 0;
    for (int i = 0; i < count; i++) {
        unsigned char packet[64];
        struct sockaddr_in from;
        socklen_t len = sizeof from;
        if (poll(&entry, 1, 1000) <= 0)
            return 5;
        long got = recvfrom(fd, packet, sizeof packet, 0, (struct sockaddr *)&from, &len);
        struct iphdr *ip = (struct iphdr *)packet;
        if (got != 24 || ip->protocol != 89 || ip->ttl != 1 || ip->daddr != group.sin_addr.s_addr ||
            ip->saddr != from.sin_addr.s_addr || memcmp(packet + 20, hello, sizeof hello) || heard == ip->saddr)
            return 6;
        heard = ip->saddr;
    }
    return poll(&entry, 1, 1000) == 0 ? 0 : 7;
}

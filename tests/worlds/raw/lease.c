/* Leases of addresses over packet sockets, as with DHCP: a client that has no address yet broadcasts a datagram in a
 * frame of its own; the server hears it at a UDP socket, and answers with a frame to the hardware address of the client.
 *
 *     lease server | client */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

struct datagram {
    struct iphdr ip;
    struct udphdr udp;
    unsigned char kind, hardware[6], offered[4];
} __attribute__((packed));

static unsigned short checksum(const void *data, size_t len) {
    const unsigned char *bytes = data;
    unsigned sum = 0;
    for (size_t at = 0; at + 1 < len; at += 2)
        sum += (unsigned)bytes[at] << 8 | bytes[at + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return htons((unsigned short)~sum);
}

static int send_frame(int fd, const char *from, const char *to, int from_port, const unsigned char *hardware,
                      struct datagram *datagram) {
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(0x0800), .sll_halen = 6};
    at.sll_ifindex = (int)if_nametoindex("eth0");
    memcpy(at.sll_addr, hardware, 6);
    datagram->ip = (struct iphdr){.version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP};
    datagram->ip.tot_len = htons(sizeof *datagram);
    datagram->ip.saddr = inet_addr(from);
    datagram->ip.daddr = inet_addr(to);
    datagram->ip.check = checksum(&datagram->ip, sizeof datagram->ip);
    datagram->udp.source = htons((unsigned short)from_port);
    datagram->udp.dest = htons((unsigned short)(135 - from_port));
    datagram->udp.len = htons(sizeof *datagram - sizeof datagram->ip);
    datagram->udp.check = 0;
    return sendto(fd, datagram, sizeof *datagram, 0, (struct sockaddr *)&at, sizeof at) != sizeof *datagram;
}

static int serve(int frames) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(67)}, from;
    socklen_t len = sizeof from;
    struct datagram datagram = {0};
    if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0)
        return 2;
    if (recvfrom(fd, &datagram.kind, 11, 0, (struct sockaddr *)&from, &len) != 11 || datagram.kind != 1)
        return 3;
    if (from.sin_addr.s_addr != 0 || from.sin_port != htons(68))
        return 4;
    datagram.kind = 2;
    memcpy(datagram.offered, (unsigned char[]){10, 0, 0, 99}, 4);
    unsigned char hardware[6];
    memcpy(hardware, datagram.hardware, 6);
    return send_frame(frames, "10.0.0.1", "10.0.0.99", 67, hardware, &datagram);
}

static int ask(int frames) {
    struct ifreq request;
    struct datagram datagram = {.kind = 1}, answer;
    static const unsigned char all[6] = {255, 255, 255, 255, 255, 255};
    strcpy(request.ifr_name, "eth0");
    if (ioctl(frames, SIOCGIFHWADDR, &request) != 0)
        return 2;
    memcpy(datagram.hardware, request.ifr_hwaddr.sa_data, 6);
    struct pollfd entry = {.fd = frames, .events = POLLIN};
    for (int tries = 0; tries < 2; tries++) {
        if (send_frame(frames, "0.0.0.0", "255.255.255.255", 68, all, &datagram))
            return 3;
        while (poll(&entry, 1, 500) > 0) {
            struct sockaddr_ll from;
            socklen_t len = sizeof from;
            long got = recvfrom(frames, &answer, sizeof answer, 0, (struct sockaddr *)&from, &len);
            if (got != sizeof answer || answer.ip.protocol != IPPROTO_UDP || answer.udp.dest != htons(68))
                continue;
            return from.sll_pkttype != PACKET_HOST || answer.kind != 2 || answer.offered[3] != 99;
        }
    }
    return 4;
}

int main(int argc, char **argv) {
    int frames = socket(AF_PACKET, SOCK_DGRAM, htons(0x0800));
    if (frames < 0 || argc != 2)
        return 1;
    return argv[1][0] == 's' ? serve(frames) : ask(frames);
}

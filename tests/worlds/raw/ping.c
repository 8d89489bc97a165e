/* Sends an echo request, whose text is symbolic, and waits for the reply.
 *
 *     ping ADDRESS          with a raw socket
 *     ping ADDRESS dgram    with a ping socket
 *
 * Ends with 0 if the reply is right, with 3 if none comes. Without arguments it waits for a request and ends. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <everett.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

struct message {
    struct icmphdr header;
    unsigned char text[4];
};

static unsigned short checksum(const void *data, size_t len) {
    const unsigned char *bytes = data;
    unsigned sum = 0;
    for (size_t at = 0; at + 1 < len; at += 2)
        sum += (unsigned)bytes[at] << 8 | bytes[at + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return htons((unsigned short)~sum);
}

static int reply_to(int fd, int is_raw, const struct message *sent) {
    unsigned char packet[128];
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    for (;;) {
        if (poll(&entry, 1, 100) <= 0)
            return 3;
        long got = recv(fd, packet, sizeof packet, 0);
        long header = is_raw ? (packet[0] & 15) * 4 : 0;
        const struct message *message = (const void *)(packet + header);
        if (got - header < (long)sizeof *message)
            return 4;
        if (message->header.type != ICMP_ECHOREPLY)
            continue;
        if (checksum(message, sizeof *message) != 0)
            return 5;
        return memcmp(message->text, sent->text, sizeof sent->text) ? 6 : 0;
    }
}

int main(int argc, char **argv) {
    int is_raw = argc != 3;
    int fd = socket(AF_INET, is_raw ? SOCK_RAW : SOCK_DGRAM, IPPROTO_ICMP);
    if (fd < 0)
        return 1;
    if (argc < 2) {
        unsigned char packet[128];
        struct sockaddr_in from;
        socklen_t len = sizeof from;
        long got = recvfrom(fd, packet, sizeof packet, 0, (struct sockaddr *)&from, &len);
        return got != 32 || packet[20] != ICMP_ECHO || from.sin_addr.s_addr != inet_addr("10.0.0.2");
    }
    struct sockaddr_in to = {.sin_family = AF_INET};
    inet_pton(AF_INET, argv[1], &to.sin_addr);
    struct message sent = {.header = {.type = ICMP_ECHO}};
    everett_make_symbolic(sent.text, 1, "text");
    sent.header.un.echo.id = htons(7);
    sent.header.checksum = checksum(&sent, sizeof sent);
    if (sendto(fd, &sent, sizeof sent, 0, (struct sockaddr *)&to, sizeof to) != sizeof sent)
        return 2;
    return reply_to(fd, is_raw, &sent);
}

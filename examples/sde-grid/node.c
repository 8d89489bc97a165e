/* A node of a grid of radios: what it sends all its neighbours hear, and the one that a packet names forwards it.
 *
 *     node PORT NUMBER NEXT NEIGHBOUR@ADDRESS[:PORT]... [send COUNT PERIOD_MS]
 *
 * NEXT is the number of the neighbour on the route to the destination, or - at the destination, which counts. With `send`
 * the node is a source: it sends COUNT packets, one every PERIOD_MS. */
#include <arpa/inet.h>
#include <everett.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { MOST_NEIGHBOURS = 8 };

struct packet {
    uint16_t next;
    uint16_t number;
};

static struct sockaddr_in neighbours[MOST_NEIGHBOURS];
static int neighbour_count;

static int add_neighbour(const char *text, const char *port) {
    char address[64];
    const char *at = strchr(text, '@');
    if (at == NULL || strlen(at + 1) >= sizeof address || neighbour_count == MOST_NEIGHBOURS)
        return 0;
    strcpy(address, at + 1);
    char *colon = strchr(address, ':');
    if (colon != NULL) {
        *colon = 0;
        port = colon + 1;
    }
    struct sockaddr_in *neighbour = &neighbours[neighbour_count++];
    neighbour->sin_family = AF_INET;
    neighbour->sin_port = htons((uint16_t)atoi(port));
    return inet_pton(AF_INET, address, &neighbour->sin_addr) == 1;
}

static void transmit(int fd, uint16_t next, uint16_t number) {
    struct packet packet = {htons(next), htons(number)};
    for (int i = 0; i < neighbour_count; i++)
        sendto(fd, &packet, sizeof packet, 0, (struct sockaddr *)&neighbours[i], sizeof neighbours[i]);
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: %s PORT NUMBER NEXT NEIGHBOUR@ADDRESS[:PORT]... [send COUNT PERIOD_MS]\n", argv[0]);
        return 2;
    }
    uint16_t self = (uint16_t)atoi(argv[2]);
    int destination = strcmp(argv[3], "-") == 0;
    uint16_t next = (uint16_t)atoi(argv[3]);
    int count = 0, period_ms = 0;
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "send") == 0 && i + 2 < argc) {
            count = atoi(argv[i + 1]);
            period_ms = atoi(argv[i + 2]);
            break;
        }
        if (!add_neighbour(argv[i], argv[1])) {
            fprintf(stderr, "%s is not a neighbour\n", argv[i]);
            return 2;
        }
    }
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1]))};
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0) {
        perror("socket");
        return 2;
    }
    for (int i = 0; i < count; i++) {
        struct timespec period = {period_ms / 1000, period_ms % 1000 * 1000000L};
        nanosleep(&period, NULL);
        transmit(fd, next, (uint16_t)i);
    }
    int32_t received = 0;
    for (;;) {
        struct packet packet;
        if (recv(fd, &packet, sizeof packet, 0) != sizeof packet || ntohs(packet.next) != self)
            continue;
        if (!destination) {
            transmit(fd, next, ntohs(packet.number));
            continue;
        }
        received++;
        everett_expose("1", "received", &received, sizeof received);
        printf("received %d: packet %d\n", received, ntohs(packet.number));
        fflush(stdout);
    }
}

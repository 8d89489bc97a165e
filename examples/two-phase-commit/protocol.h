/* What coordinator and committers say to each other, over UDP: three bytes a message. */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <arpa/inet.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { VOTE = 1, DECISION = 2 };
enum { MOST_COMMITTERS = 64 };

struct message {
    uint8_t kind;
    uint8_t committer;
    uint8_t yes;
};

static inline int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits for a message until a time. 1 if there is one, 0 if not. */
static inline int receive(int fd, struct message *message, struct sockaddr_in *from, int64_t deadline_ms) {
    for (;;) {
        int64_t left_ms = deadline_ms - now_ms();
        if (left_ms <= 0)
            return 0;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, (int)left_ms) <= 0)
            continue;
        socklen_t size = sizeof *from;
        if (recvfrom(fd, message, sizeof *message, 0, (struct sockaddr *)from, &size) == sizeof *message)
            return 1;
    }
}

static inline int open_socket(uint16_t port) {
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0) {
        perror("socket");
        exit(2);
    }
    return fd;
}

static inline struct sockaddr_in address_of(const char *address, const char *port) {
    struct sockaddr_in result = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    if (inet_pton(AF_INET, address, &result.sin_addr) != 1) {
        fprintf(stderr, "%s is not an IPv4 address\n", address);
        exit(2);
    }
    return result;
}

#endif

/* The elections of Raft among a few hosts, over UDP: who is asked first in a term gets the vote, a majority makes a leader, and a leader
 * shows by heartbeats that it is there. There is no log.
 *
 *     raft NUMBER TIMEOUT_MS UNTIL_MS ADDRESS...
 *
 * NUMBER is which of the addresses is its own; after TIMEOUT_MS without a leader it wants to be one; at UNTIL_MS it ends.
 *
 * A host remembers its term and its vote in a file. Raft asks that they are on stable storage before an answer goes out; here they
 * are only written, so a host that loses its power may vote twice in a term. */
#include <arpa/inet.h>
#include <everett.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef SYNCS
#define SYNCS 0
#endif

enum { PORT = 7000, MOST_HOSTS = 9, HEARTBEAT_MS = 20, NOBODY = 255 };
enum kind { REQUEST = 1, VOTE, HEARTBEAT };
enum role { FOLLOWER, CANDIDATE, LEADER };

struct message {
    uint8_t kind, term, from, granted;
};

/* What outlives a restart. */
struct stable {
    uint8_t term, voted_for;
};

static struct stable stable = {.term = 0, .voted_for = NOBODY};
static enum role role = FOLLOWER;
static uint32_t voters; /* who has voted for us, a bit each */
static int own, hosts, fd, file;
static struct sockaddr_in peers[MOST_HOSTS];

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void remember(void) {
    if (pwrite(file, &stable, sizeof stable, 0) != sizeof stable || (SYNCS && fsync(file) != 0))
        abort();
}

static void send_to(int host, enum kind kind, int granted) {
    struct message message = {(uint8_t)kind, stable.term, (uint8_t)own, (uint8_t)granted};
    sendto(fd, &message, sizeof message, 0, (struct sockaddr *)&peers[host], sizeof peers[host]);
}

static void send_to_all(enum kind kind) {
    for (int host = 0; host < hosts; host++)
        if (host != own)
            send_to(host, kind, 0);
}

static void follow(uint8_t term) {
    role = FOLLOWER;
    if (term > stable.term) {
        stable = (struct stable){term, NOBODY};
        remember();
    }
}

static void stand_for_election(void) {
    role = CANDIDATE;
    voters = 1u << own;
    stable = (struct stable){(uint8_t)(stable.term + 1), (uint8_t)own};
    remember();
    send_to_all(REQUEST);
}

/* 1 if the time to the next election begins anew. */
static int handle(const struct message *message) {
    if (message->term > stable.term)
        follow(message->term);
    switch (message->kind) {
    case REQUEST: {
        int granted = message->term == stable.term && role == FOLLOWER &&
                      (stable.voted_for == NOBODY || stable.voted_for == message->from);
        if (granted) {
            stable.voted_for = message->from;
            remember();
        }
        send_to(message->from, VOTE, granted);
        return granted;
    }
    case VOTE:
        if (role != CANDIDATE || message->term != stable.term || !message->granted)
            return 0;
        voters |= 1u << message->from;
        if (__builtin_popcount(voters) * 2 <= hosts)
            return 0;
        role = LEADER;
        everett_expose("1", "leads", &stable.term, sizeof stable.term);
        return 0;
    case HEARTBEAT:
        if (message->term == stable.term && role == CANDIDATE)
            follow(message->term);
        return message->term == stable.term;
    }
    return 0;
}

int main(int argc, char **argv) {
    hosts = argc - 4;
    if (hosts < 1 || hosts > MOST_HOSTS)
        return 2;
    own = atoi(argv[1]);
    int timeout_ms = atoi(argv[2]), until_ms = atoi(argv[3]);
    for (int host = 0; host < hosts; host++) {
        peers[host] = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(PORT)};
        if (inet_pton(AF_INET, argv[4 + host], &peers[host].sin_addr) != 1)
            return 2;
    }
    fd = socket(AF_INET, SOCK_DGRAM, 0);
    file = open("stable", O_RDWR | O_CREAT, 0644);
    if (bind(fd, (struct sockaddr *)&peers[own], sizeof peers[own]) != 0 || file < 0)
        return 2;
    struct stable found;
    if (pread(file, &found, sizeof found, 0) == sizeof found)
        stable = found;
    int64_t election_ms = now_ms() + timeout_ms, heartbeat_ms = 0;
    for (;;) {
        int64_t now = now_ms();
        if (now >= until_ms)
            return 0;
        if (role == LEADER && now >= heartbeat_ms) {
            send_to_all(HEARTBEAT);
            heartbeat_ms = now + HEARTBEAT_MS;
        }
        if (role != LEADER && now >= election_ms) {
            stand_for_election();
            election_ms = now + timeout_ms;
        }
        int64_t next_ms = role == LEADER ? heartbeat_ms : election_ms;
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        if (poll(&wait, 1, (int)((next_ms < until_ms ? next_ms : until_ms) - now)) <= 0)
            continue;
        struct message message;
        if (recv(fd, &message, sizeof message, 0) != sizeof message)
            continue;
        enum role before = role;
        if (handle(&message))
            election_ms = now_ms() + timeout_ms;
        if (role == LEADER && before != LEADER)
            heartbeat_ms = now_ms() + HEARTBEAT_MS;
    }
}

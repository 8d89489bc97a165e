/* The coordinator of a two-phase commit, corrected: a vote that comes again is answered with the decision again.
 *
 *     coordinator PORT COMMITTERS TIMEOUT_MS
 *
 * It ends when nobody has asked for ten times the time-out. */
#include "protocol.h"

static struct sockaddr_in addresses[MOST_COMMITTERS];
static int voted[MOST_COMMITTERS];

static void tell(int fd, int committer, int all_yes) {
    struct message decision = {DECISION, (uint8_t)committer, (uint8_t)all_yes};
    /* Whoever does not get it asks again. */
    sendto(fd, &decision, sizeof decision, 0, (struct sockaddr *)&addresses[committer], sizeof addresses[committer]);
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s PORT COMMITTERS TIMEOUT_MS\n", argv[0]);
        return 2;
    }
    int fd = open_socket((uint16_t)atoi(argv[1]));
    int committers = atoi(argv[2]);
    if (committers < 1 || committers > MOST_COMMITTERS)
        return 2;
    int64_t timeout_ms = atoi(argv[3]);

    struct message message;
    struct sockaddr_in from;
    int votes = 0, all_yes = 1;
    int64_t deadline_ms = now_ms() + timeout_ms;
    while (votes < committers) {
        if (!receive(fd, &message, &from, deadline_ms)) {
            all_yes = 0;
            break;
        }
        if (message.kind != VOTE || message.committer >= committers)
            continue;
        addresses[message.committer] = from;
        if (voted[message.committer])
            continue;
        voted[message.committer] = 1;
        votes++;
        if (!message.yes)
            all_yes = 0;
    }

    printf("decision: %s\n", all_yes ? "yes" : "no");
    for (int i = 0; i < committers; i++)
        if (voted[i])
            tell(fd, i, all_yes);
    while (receive(fd, &message, &from, now_ms() + 10 * timeout_ms)) {
        if (message.kind != VOTE || message.committer >= committers)
            continue;
        addresses[message.committer] = from;
        tell(fd, message.committer, all_yes);
    }
    return 0;
}

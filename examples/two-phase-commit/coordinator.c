/* The coordinator of a two-phase commit: waits for the votes of all committers, and tells them the decision.
 *
 *     coordinator PORT COMMITTERS TIMEOUT_MS
 *
 * The mistake: the decision is sent once. A committer that does not get it decides by itself, and the others may have
 * got it: see committer.c. */
#include "protocol.h"

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: %s PORT COMMITTERS TIMEOUT_MS\n", argv[0]);
        return 2;
    }
    int fd = open_socket((uint16_t)atoi(argv[1]));
    int committers = atoi(argv[2]);
    if (committers < 1 || committers > MOST_COMMITTERS)
        return 2;
    int64_t deadline_ms = now_ms() + atoi(argv[3]);

    struct sockaddr_in addresses[MOST_COMMITTERS];
    int voted[MOST_COMMITTERS] = {0};
    int votes = 0, all_yes = 1;
    while (votes < committers) {
        struct message message;
        struct sockaddr_in from;
        if (!receive(fd, &message, &from, deadline_ms)) {
            all_yes = 0;
            break;
        }
        if (message.kind != VOTE || message.committer >= committers || voted[message.committer])
            continue;
        voted[message.committer] = 1;
        addresses[message.committer] = from;
        votes++;
        if (!message.yes)
            all_yes = 0;
    }

    for (int i = 0; i < committers; i++) {
        struct message decision = {DECISION, (uint8_t)i, (uint8_t)all_yes};
        if (voted[i])
            sendto(fd, &decision, sizeof decision, 0, (struct sockaddr *)&addresses[i], sizeof addresses[i]);
    }
    printf("decision: %s\n", all_yes ? "yes" : "no");
    return 0;
}

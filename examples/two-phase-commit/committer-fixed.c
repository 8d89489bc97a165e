/* A committer of a two-phase commit, corrected: whoever voted yes may not decide alone, but asks until it is told.
 *
 *     committer ADDRESS PORT NUMBER yes|no TIMEOUT_MS
 *
 * After ten time-outs it gives up without a decision, and says so: that is what two-phase commit can promise. */
#include "protocol.h"
#include <everett.h>

static int32_t decision;

static int decide(int yes) {
    decision = yes != 0;
    everett_expose("1", "decision", &decision, sizeof decision);
    printf("decision: %s\n", yes ? "yes" : "no");
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: %s ADDRESS PORT NUMBER yes|no TIMEOUT_MS\n", argv[0]);
        return 2;
    }
    struct sockaddr_in coordinator = address_of(argv[1], argv[2]);
    uint8_t number = (uint8_t)atoi(argv[3]);
    uint8_t yes = argv[4][0] == 'y';
    int fd = open_socket(0);

    struct message vote = {VOTE, number, yes};
    for (int attempt = 0; attempt < 10; attempt++) {
        sendto(fd, &vote, sizeof vote, 0, (struct sockaddr *)&coordinator, sizeof coordinator);
        /* Without this vote nobody can commit, whether it arrives or not. */
        if (!yes)
            return decide(0);
        int64_t deadline_ms = now_ms() + atoi(argv[5]);
        struct message message;
        struct sockaddr_in from;
        while (receive(fd, &message, &from, deadline_ms))
            if (message.kind == DECISION && message.committer == number)
                return decide(message.yes);
    }
    printf("no decision\n");
    return 1;
}

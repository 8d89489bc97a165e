/* A server's session: three messages of two bytes, a command and an argument. The server promises that it never
 * answers a query on a session that is not authenticated. One sequence of messages breaks the promise. */
#include <everett.h>
#include <assert.h>
#include <stdio.h>

enum { OPEN = 1, AUTHENTICATE = 2, QUERY = 3, RENEW = 4, CLOSE = 5 };
enum state { CLOSED, OPENED, TRUSTED };

struct session {
    enum state state;
    unsigned char token;
    int renewals;
};

static void handle(struct session *s, unsigned char command, unsigned char argument) {
    switch (command) {
    case OPEN:
        if (s->state == CLOSED) {
            s->state = OPENED;
            s->token = argument;
        }
        break;
    case AUTHENTICATE:
        if (s->state == OPENED && (unsigned char)(s->token * 7 + 3) == argument)
            s->state = TRUSTED;
        break;
    case RENEW:
        /* The mistake: renewing does not look at the state. */
        s->renewals++;
        if (argument == s->token)
            s->state = TRUSTED;
        break;
    case QUERY:
        if (s->state == TRUSTED) {
            assert(s->renewals == 0 || s->token != 0);
            printf("answered\n");
        }
        break;
    case CLOSE:
        s->state = CLOSED;
        s->token = 0;
        break;
    }
}

int main(void) {
    unsigned char message[6];
    struct session session = {CLOSED, 0, 0};
    everett_make_symbolic(message, sizeof message, "message");
    for (int i = 0; i < 6; i += 2)
        handle(&session, message[i], message[i + 1]);
    return session.state;
}

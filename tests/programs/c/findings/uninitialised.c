// Decides on a field that only one branch writes; padding may be copied freely.
// run: --check-uninitialised
// paths: 3
// finding: uninitialised 22
// not on -O3: uninitialised the optimiser takes any value for one that was never written
#include <everett.h>
#include <stdlib.h>

struct reply { char kind; int code; };

static struct reply make(unsigned char input) {
    struct reply reply;
    reply.kind = input;
    if (input < 100) reply.code = 7;
    return reply;
}

static int use(unsigned char input) {
    struct reply reply = make(input);
    struct reply *copy = malloc(sizeof reply);
    *copy = reply;
    if (copy->code == 7) return 1;
    return 2;
}

int main(void) {
    int *zeros = calloc(4, sizeof *zeros);
    if (zeros[3]) return 3;
    unsigned char input;
    everett_make_symbolic(&input, 1, "input");
    if (input > 200) return 0;
    return use(input);
}

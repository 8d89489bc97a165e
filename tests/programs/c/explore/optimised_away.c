// The same errors, optimised away: nothing is found, which the run says (see kept_errors.c).
// build: -w -O2
// run:
// paths: 1
#include <stdlib.h>

int main(int argc, char **argv) {
    int *freed = malloc(sizeof *freed);
    free(freed);
    *freed = 3;
    return 0;
}

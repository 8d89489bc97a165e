// A program in folders that are named like those of libraries: all of its findings are its own, each at its line.
// run:
// args: --sym-arg 1
// paths: 3
// finding: abort 14
// finding: abort 10
#include <stdlib.h>

static void lower(char c) {
    if (c == 'a') abort();
}

static void upper(char c) {
    if (c == 'A') abort();
}

int main(int argc, char **argv) {
    if (argc < 2) return 0;
    lower(argv[1][0]);
    upper(argv[1][0]);
    return 0;
}

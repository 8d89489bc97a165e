// Errors that an optimiser removes and no check of a build sees: they are confirmed on the build without optimisation.
// build: -w -O2 --keep-errors
// run: --check-leaks
// paths: 3
// finding: leak 18
// finding: stack-overflow 12
#include <everett.h>
#include <stdlib.h>

static int deep(int number) {
    volatile char local[4096];
    if (number > 0) return deep(number + 1) + local[0];
    return 0;
}

int main(void) {
    switch (everett_choose(3, "error")) {
    case 0: return malloc(5) == 0;
    case 1: return deep(1) & 0;
    default: return 0;
    }
}

// Errors that an optimiser removes: they are explored as they were written, and confirmed on the checked build.
// build: -w -O2 --keep-errors
// run:
// paths: 6
// finding: out-of-bounds 15
// finding: use-after-free 26
// finding: null-pointer 30
// finding: undefined-shift 34
// finding: out-of-bounds 37
#include <everett.h>
#include <stdlib.h>

static int unused(int last) {
    int local[4];
    for (int i = 0; i <= last; i++) local[i] = i;
    return 0;
}

int main(int argc, char **argv) {
    switch (everett_choose(6, "error")) {
    case 0:
        return unused(4);
    case 1: {
        int *freed = malloc(sizeof *freed);
        free(freed);
        *freed = 3;
        return 0;
    }
    case 2: {
        int value = *(int *)(argc - 1L);
        return 0;
    }
    case 3:
        return (1 << (argc + 31)) & 0;
    case 4: {
        char *block = malloc(8);
        block[7 + argc] = 1;
        free(block);
        return 0;
    }
    default:
#ifndef __OPTIMIZE__
        abort();
#endif
        return 0;
    }
}

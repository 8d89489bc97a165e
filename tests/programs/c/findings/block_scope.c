// A variable is used after its block has ended, by a pointer. Blocks that are entered again, and variables that jumps
// pass over, are no errors.
// build: -w
// run:
// paths: 4
// finding: use-after-scope 34
// finding: use-after-scope 41
#include <everett.h>
#include <string.h>

static int again(int count) {
    int sum = 0;
    for (int i = 0; i < count; i++) {
        int local[4];
        int *p = local;
        memset(p, i, sizeof local);
        sum += p[3] & 1;
    }
    goto inside;
    while (count-- > 0) {
        int passed;
        int *p = &passed;
    inside:
        p = &passed;
        *p = 1;
        sum += *p;
    }
    return sum;
}

static int small(void) {
    int *p;
    { int inner = everett_choose(2, "inner"); p = &inner; }
    return *p;
}

static int large(void) {
    char *p;
    { char inner[10000]; inner[5000] = 7; p = inner; }
    p += 5000;
    return *p;
}

int main(void) {
    switch (everett_choose(3, "which")) {
    case 0: return again(3) != 9;
    case 1: return small();
    default: return large();
    }
}

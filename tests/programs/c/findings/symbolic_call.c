// A call through a symbolic pointer: a path for each function that can be meant, and one for everything else.
// build: -w
// run:
// paths: 4
// finding: invalid-call 29
// finding: invalid-call 31
#include <everett.h>
#include <stdint.h>

typedef int (*Operation)(int);

static int increment(int x) {
    return x + 1;
}

static int twice(int x) {
    return 2 * x;
}

static int three(int x, int y, int z) {
    return x + y + z;
}

static void *volatile all[] = {(void *)increment, (void *)twice, 0, (void *)three};

int main(void) {
    uint64_t number = everett_symbolic_u64("number");
    if (everett_choose(2, "way"))
        return ((Operation)all[number & 3])(1);
    everett_assume(number < 0x10000);
    return ((Operation)number)(1);
}

// Computed jumps to symbolic addresses (clang makes one of both): a path for each label, and one for everything else.
// build: -w
// run:
// paths: 5
// finding: bad-jump 17
#include <everett.h>
#include <stdint.h>

int main(void) {
    static void *const labels[] = {&&one, &&two, &&three, 0};
    uint64_t number = everett_symbolic_u64("number");
    if (everett_choose(2, "way")) {
        everett_assume(number < 0x10000);
        goto *(void *)number;
    }
    // Three labels, and one that is none.
    goto *labels[number & 3];
one:
    return 1;
two:
    return 2;
three:
    return 3;
}

// An exception that reaches a noexcept function is an uncaught one, not an abort of the program's own.
// exec:
// run:
// paths: 2
// finding: uncaught-exception 12
#include <everett.h>

static void fail(unsigned char byte) {
    if (byte == 9)
        throw 1;
}
static void promise(unsigned char byte) noexcept { fail(byte); }

int main() {
    unsigned char byte = 0;
    everett_make_symbolic(&byte, sizeof byte, "byte");
    promise(byte);
    return 0;
}

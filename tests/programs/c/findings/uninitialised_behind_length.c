// A symbolic length decides whether a byte was written.
// run: --check-uninitialised
// paths: 9
// finding: uninitialised 14
#include <everett.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    char *text = malloc(8);
    unsigned n = everett_range(0, 9, "n");
    memset(text, 1, n);
    // Written for n above 5 only.
    if (text[5])
        return 1;
    return 0;
}

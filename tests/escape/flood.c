// Prints without end.
// options: --max-output 16M
// native: 2
// exec: 2
// says: --max-output
// stdout: 16777216
#include "escape.h"

int main(void) {
    static char block[1 << 20];
    memset(block, 'x', sizeof block);
    for (;;) write(1, block, sizeof block);
}

// Prints something and then uses up its memory: what it printed is kept.
// options: --max-memory 256M
// native: 2
// exec: 2
// says: memory
// stdout: 7
#include "escape.h"

int main(void) {
    write(1, "before\n", 7);
    for (;;) {
        char *part = mmap(0, 16 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (part == MAP_FAILED && fork() < 0) pause();
        if (part != MAP_FAILED) memset(part, 1, 16 << 20);
    }
}

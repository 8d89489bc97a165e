// Processes that each have less memory than they may, and together more: a search stops, a single run ends.
// options: --max-memory 512M
// native: 2
// exec: 2
// run: 0
// says: memory
#include "escape.h"

int main(void) {
    for (int child = 0; child < 16; child++) {
        if (fork() == 0) {
            char *memory = mmap(0, 128 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            for (long at = 0; at < 128 << 20; at += PAGE) memory[at] = 1;
            pause();
        }
    }
    pause();
    return 0;
}

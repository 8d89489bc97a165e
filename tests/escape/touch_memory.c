// Reserves more memory than it may have and touches all of it.
// options: --max-memory 512M
// native: 2
// exec: 2
// says: memory
#include "escape.h"

int main(void) {
    printf("before\n");
    fflush(stdout);
    // In parts: one that is too large would be refused.
    for (int i = 0; i < 64; i++) {
        char *part = mmap(0, 128ul << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (part == MAP_FAILED) {
            // The rest by many processes, each with its share.
            for (int child = 0; child < 64; child++)
                if (fork() == 0) part = 0;
            part = malloc(64 << 20);
            memset(part, 1, 64 << 20);
            pause();
        }
        for (unsigned long at = 0; at < 128ul << 20; at += PAGE) part[at] = 1;
    }
    return 0;
}

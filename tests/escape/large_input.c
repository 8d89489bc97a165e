// Asks for an input that is larger than the memory of the run.
// options: --max-memory 512M
// native: 2
// says: memory
#include "escape.h"

// The call by which a native program gets the bytes of an input.
#define OWN_INPUT (0x10000 + 100)

int main(void) {
    long size = 3l << 30;
    char *memory = mmap(0, size, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    printf("before\n");
    fflush(stdout);
    raw(OWN_INPUT, (long)"input", (long)memory, size, 0, 0, 0);
    return 0;
}

// Reads a byte in every 2 MiB of memory that it never writes: nothing is resident, but each byte takes a page of tables.
// options: --max-memory 256M
// native: 2
// says: --max-memory
#include "escape.h"

#define MAPS 128

int main(void) {
    const long size = 4l << 30, step = 2 << 20;
    volatile char *maps[MAPS];
    for (int map = 0; map < MAPS; map++) {
        maps[map] = mmap(0, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (maps[map] == MAP_FAILED) return 1;
    }
    for (int map = 0; map < MAPS; map++)
        for (long at = 0; at < size; at += step) (void)maps[map][at];
    return 1;
}

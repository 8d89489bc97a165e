// Lets the kernel touch memory: MAP_POPULATE, MAP_LOCKED, MADV_POPULATE_WRITE.
// options: --max-memory 512M
// native: 0
#include "escape.h"

int main(int argc, char **argv) {
    begin(argc, argv);
    int got = 0;
    for (int i = 0; i < 40; i++) {
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | (i % 2 ? 0x8000 : 0x2000);
        if (mmap(0, 64ul << 20, 3, flags, -1, 0) != MAP_FAILED) got++;
    }
    must(got < 9, "populated memory without end");
    char *memory = mmap(0, 4ul << 30, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory != MAP_FAILED) refused("madvise", raw(SYS_madvise, (long)memory, 4ul << 30, 23, 0, 0, 0));
    char *shared = mmap(0, 4ul << 30, 3, MAP_SHARED | MAP_ANONYMOUS | 0x8000, -1, 0);
    must(shared == MAP_FAILED, "shared memory");
    return end();
}

// Maps over, unmaps, protects, moves and forgets the pages from which Everett injects calls.
// native: 0
#include "escape.h"
#include <sys/shm.h>

static void attempts(unsigned long start, unsigned long size) {
    refused("mmap", raw(SYS_mmap, start, size, 7, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    refused("mmap shared", raw(SYS_mmap, start, size, 7, MAP_FIXED | MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    refused("mmap no replace", raw(SYS_mmap, start, size, 7, 0x100000 | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    refused("mmap both", raw(SYS_mmap, start, size, 7, MAP_FIXED | 0x100000 | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    refused("munmap", raw(SYS_munmap, start, size, 0, 0, 0, 0));
    for (int rights = 0; rights < 8; rights++) refused("mprotect", raw(SYS_mprotect, start, size, rights, 0, 0, 0));
    refused("pkey_mprotect", raw(329, start, size, 7, -1, 0, 0));
    for (int advice = 0; advice < 30; advice++) refused("madvise", raw(SYS_madvise, start, size, advice, 0, 0, 0));
    for (int flags = 1; flags < 8; flags++) {
        refused("mremap", raw(SYS_mremap, start, size, size, flags, 0x10000000, 0));
        refused("mremap larger", raw(SYS_mremap, start, size, 2 * size, flags, 0x10000000, 0));
        refused("mremap of nothing", raw(SYS_mremap, start, 0, size, flags, 0x10000000, 0));
    }
}

int main(int argc, char **argv) {
    begin(argc, argv);
    attempts(GATE, PAGE);
    attempts(GATE, 2 * PAGE);
    attempts(GATE + PAGE, PAGE);
    attempts(GATE, 1);
    attempts(GATE, PAGE + 1);
    // From below, and around everything.
    refused("mmap below", raw(SYS_mmap, GATE - PAGE, 2 * PAGE, 7, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    refused("munmap below", raw(SYS_munmap, GATE - 16 * PAGE, 17 * PAGE, 0, 0, 0, 0));
    refused("munmap of all", raw(SYS_munmap, 0, 0x7ffffffff000, 0, 0, 0, 0));
    refused("munmap around", raw(SYS_munmap, PAGE, -PAGE, 0, 0, 0, 0));
    char *page = mmap(0, 4 * PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    refused("mremap to", raw(SYS_mremap, (long)page, PAGE, PAGE, 3, GATE, 0));
    refused("mremap to below", raw(SYS_mremap, (long)page, 2 * PAGE, 2 * PAGE, 3, GATE - PAGE, 0));
    refused("mremap, not unmapped", raw(SYS_mremap, (long)page, PAGE, PAGE, 7, GATE, 0));
    refused("mremap larger to", raw(SYS_mremap, (long)page, PAGE, 3 * PAGE, 3, GATE - PAGE, 0));
    int id = shmget(IPC_PRIVATE, PAGE, 0600 | IPC_CREAT);
    refused("shmat", raw(SYS_shmat, id, GATE, SHM_REMAP, 0, 0, 0));
    refused("shmat", raw(SYS_shmat, id, GATE, 0, 0, 0, 0));
    refused("remap_file_pages", raw(216, GATE, PAGE, 0, 0, 0, 0));
    refused("mseal", raw(462, GATE, PAGE, 0, 0, 0, 0));
    refused("brk", raw(SYS_brk, GATE + PAGE, 0, 0, 0, 0, 0) == GATE + PAGE ? 0 : -1);
    // The model does not write there either.
    int pipes[2];
    pipe(pipes);
    write(pipes[1], "\xcc\xcc\xcc\xcc", 4);
    refused("read", raw(SYS_read, pipes[0], GATE, 4, 0, 0, 0));
    refused("uname", raw(SYS_uname, GATE, 0, 0, 0, 0, 0));
    refused("getrandom", raw(318, GATE, 16, 0, 0, 0, 0));
    catch_faults();
    if (TRY == 0) {
        *(volatile char *)GATE = 0x90;
        escaped("the gate is writable", 0);
    }
    return end();
}

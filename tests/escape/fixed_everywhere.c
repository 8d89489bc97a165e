// MAP_FIXED over every part of the address space, its own code, stack and thread-local storage among them.
// native: 0
#include "escape.h"

static void over(long start) {
    raw(SYS_mmap, start, 16 * PAGE, 7, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    raw(SYS_munmap, start, 16 * PAGE, 0, 0, 0, 0);
    raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

static void protect(long rights) {
    for (unsigned long start = 0; start < 0x800000000000; start += 1ul << 40)
        raw(SYS_mprotect, start, 1ul << 40, rights, 0, 0, 0);
    raw(SYS_mprotect, (long)&rights & -PAGE, PAGE, rights, 0, 0, 0);
    raw(SYS_mprotect, (long)protect & -PAGE, PAGE, rights, 0, 0, 0);
    raw(SYS_fork, 0, 0, 0, 0, 0, 0);
    raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

static void vanish(long unused) {
    (void)unused;
    // Everything below and above the gate goes; the last call comes from nowhere.
    raw(SYS_munmap, GATE + 2 * PAGE, 0x7ffffffff000 - GATE - 2 * PAGE, 0, 0, 0, 0);
    raw(SYS_munmap, 0, GATE, 0, 0, 0, 0);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    long local;
    for (int bit = 12; bit < 48; bit++) {
        in_child(over, 1ul << bit);
        in_child(over, (1ul << bit) - PAGE);
    }
    long places[] = {(long)main & -PAGE, (long)&local & -PAGE, (long)&escapes & -PAGE, (long)&errno & -PAGE,
                     0x7ffffffde000, 0x7ffff7ff0000, GATE - 16 * PAGE, GATE + 2 * PAGE, -1, -PAGE, 0x7ffffffff000,
                     0xffffffffff600000};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) in_child(over, places[i]);
    for (int rights = 0; rights < 8; rights++) in_child(protect, rights);
    in_child(vanish, 0);
    return end();
}

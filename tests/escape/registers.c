// Registers that a program of this kind never touches: segments, flags, bases, protection keys.
// native: 0
#include "escape.h"

static void flags(long bits) {
    __asm__ volatile("pushfq\n orq %0, (%%rsp)\n popfq\n" : : "r"(bits) : "cc", "memory");
    mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fork() == 0) raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

static void segment(long selector) {
    __asm__ volatile("mov %0, %%ds\n mov %0, %%es\n" : : "r"((int)selector));
    mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    __asm__ volatile("mov %0, %%gs\n" : : "r"((int)selector));
    mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    __asm__ volatile("mov %0, %%ss\n" : : "r"((int)selector));
    mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void base(long address) {
    raw(SYS_arch_prctl, 0x1001, address, 0, 0, 0, 0);
    raw(SYS_arch_prctl, 0x1002, address, 0, 0, 0, 0);
    raw(SYS_mmap, 0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

static void own_base(long address) {
    // wrgsbase, without the kernel: also addresses that the kernel does not let anybody set.
    __asm__ volatile("wrgsbase %0" : : "r"(address));
    raw(SYS_mmap, 0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw(SYS_fork, 0, 0, 0, 0, 0, 0) == 0) raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    long now;
    __asm__ volatile("rdgsbase %0" : "=r"(now));
    raw(SYS_exit_group, now != address, 0, 0, 0, 0, 0);
}

static void keys(long rights) {
    // wrpkru: no access to memory with key 0, which is all there is.
    __asm__ volatile(".byte 0x0f, 0x01, 0xef" : : "a"(rights), "c"(0), "d"(0) : "memory");
    raw(SYS_mmap, 0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

static void privileged(long which) {
    switch (which) {
    case 0: __asm__ volatile("mov %%cr0, %%rax" : : : "rax"); break;
    case 1: __asm__ volatile("rdmsr" : : "c"(0x1b) : "rax", "rdx"); break;
    case 2: __asm__ volatile("cli"); break;
    case 3: __asm__ volatile("invlpg (%0)" : : "r"(GATE)); break;
    case 4: __asm__ volatile("wbinvd"); break;
    case 5: __asm__ volatile("mov %%rax, %%dr7" : : : "rax"); break;
    case 6: __asm__ volatile("swapgs"); break;
    case 7: __asm__ volatile("hlt"); break;
    }
    escaped("a privileged instruction", which);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    for (int bit = 0; bit < 22; bit++) in_child(flags, 1l << bit);
    static const int selectors[] = {0, 3, 0x10, 0x18, 0x23, 0x2b, 0x33, 0x43, 0x7b, 0x7, 0xffff};
    for (unsigned i = 0; i < sizeof selectors / sizeof *selectors; i++) in_child(segment, selectors[i]);
    static const long addresses[] = {0, -1, GATE, 1ul << 47, 0xffff800000000000, 1};
    for (unsigned i = 0; i < sizeof addresses / sizeof *addresses; i++) in_child(base, addresses[i]);
    for (unsigned i = 0; i < sizeof addresses / sizeof *addresses; i++) in_child(own_base, addresses[i]);
    for (int rights = 1; rights < 4; rights++) in_child(keys, rights);
    for (int which = 0; which < 8; which++) in_child(privileged, which);
    return end();
}

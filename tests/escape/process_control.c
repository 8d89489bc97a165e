// prctl, arch_prctl, personality, modify_ldt, iopl, rseq and others that change what a process is.
// native: 0
#include "escape.h"
#include <sys/prctl.h>

static char memory[PAGE];

static void prctls(long option) {
    for (int i = 0; i < 4; i++) {
        long argument = (long[]){0, 1, -1, (long)memory}[i];
        raw(SYS_prctl, option, argument, argument, argument, argument, 0);
        raw(SYS_prctl, option, argument, 0, 0, 0, 0);
    }
}

static void dispatch(long unused) {
    (void)unused;
    // PR_SET_SYSCALL_USER_DISPATCH: calls outside of our code would become signals.
    raw(SYS_prctl, 59, 1, (long)dispatch, 1, (long)memory, 0);
    memory[0] = 1;
    mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memory[0] = 0;
}

static void strict(long mode) {
    struct { unsigned short code; unsigned char t, f; unsigned k; } allow[1] = {{6, 0, 0, 0x7fff0000}};
    struct { unsigned short count; void *filter; } program = {1, allow};
    raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
    raw(SYS_prctl, PR_SET_SECCOMP, mode, (long)&program, 0, 0, 0);
    for (int operation = 0; operation < 4; operation++)
        for (int flags = 0; flags < 32; flags++) raw(317, operation, flags, (long)&program, 0, 0, 0);
    mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void arch(long code) {
    for (int i = 0; i < 4; i++) raw(SYS_arch_prctl, code, (long[]){0, 1, GATE, (long)memory}[i], 0, 0, 0, 0);
}

static void descriptors(long unused) {
    (void)unused;
    // A 64-bit code segment of its own, a call gate, and a segment that ends in the kernel.
    unsigned entries[][4] = {{0, 0, 0xfffff, 0x7f}, {1, 0xffff8000, 0xfffff, 0xff}, {8191, 0, 0, 0}};
    for (int i = 0; i < 3; i++) {
        raw(SYS_modify_ldt, 1, (long)entries[i], 16, 0, 0, 0);
        raw(SYS_modify_ldt, 0x11, (long)entries[i], 16, 0, 0, 0);
        raw(205, (long)entries[i], 0, 0, 0, 0, 0);
    }
    raw(SYS_modify_ldt, 0, (long)memory, PAGE, 0, 0, 0);
    refused("iopl", raw(172, 3, 0, 0, 0, 0, 0));
    refused("ioperm", raw(173, 0, 1024, 1, 0, 0, 0));
    catch_faults();
    if (TRY == 0) {
        __asm__ volatile("inb $0x70, %%al" : : : "rax");
        escaped("a port of the machine", 0);
    }
}

static void personalities(long unused) {
    (void)unused;
    for (int bit = 0; bit < 32; bit++) raw(SYS_personality, 1l << bit, 0, 0, 0, 0, 0);
    raw(SYS_personality, 8, 0, 0, 0, 0, 0);
    raw(334, (long)memory, 32, 0, 0x53053053, 0, 0);
    raw(SYS_set_robust_list, GATE, 24, 0, 0, 0, 0);
    raw(SYS_set_tid_address, GATE, 0, 0, 0, 0, 0);
    raw(453, 0, PAGE, 0, 0, 0, 0);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    for (int option = 0; option < 80; option++) in_child(prctls, option);
    in_child(prctls, 0x59616d61);
    in_child(prctls, 0x53564d41);
    in_child(dispatch, 0);
    in_child(strict, 1);
    in_child(strict, 2);
    for (int code = 0x1000; code < 0x1030; code++) in_child(arch, code);
    for (int code = 0x2001; code < 0x2004; code++) in_child(arch, code);
    for (int code = 0x5000; code < 0x5006; code++) in_child(arch, code);
    in_child(descriptors, 0);
    in_child(personalities, 0);
    return end();
}

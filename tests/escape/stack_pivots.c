// System calls with a stack pointer that points nowhere, into the kernel, or to Everett's pages.
// native: 0
#include "escape.h"

static long places[] = {0, 1, 8, 4096, -1, -8, GATE, GATE + 8, GATE + PAGE, GATE + 2 * PAGE, 1ul << 47, 0x7ffffffff000,
                        0xffff800000000000, 0xffffffffff600000};
static long kept;

static void with(long number) {
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        // fork, vfork, execve, mmap, rt_sigaction, tgkill of itself: whatever needs a stack finds none.
        long result;
        register long r10 __asm__("r10") = MAP_PRIVATE | MAP_ANONYMOUS;
        __asm__ volatile("mov %%rsp, %1\n mov %3, %%rsp\n syscall\n mov %1, %%rsp\n"
                         : "=a"(result), "+m"(kept) : "a"(number), "r"(places[i]), "D"((long)"/bin/sleep"), "S"(PAGE), "d"(3), "r"(r10)
                         : "rcx", "r11", "r8", "r9", "memory");
        if (number == SYS_fork && result == 0) raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
}

static void signalled(long place) {
    struct sigaction action = {.sa_handler = jump_back};
    sigaction(SIGUSR1, &action, 0);
    long self = getpid();
    __asm__ volatile("mov %0, %%rsp\n syscall\n ud2\n" : : "r"(place), "a"(SYS_kill), "D"(self), "S"(SIGUSR1));
}

int main(int argc, char **argv) {
    begin(argc, argv);
    static const long numbers[] = {SYS_fork, SYS_execve, SYS_mmap, SYS_rt_sigaction, SYS_munmap, SYS_sigaltstack,
                                   SYS_brk, SYS_getpid, SYS_madvise};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) in_child(with, numbers[i]);
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) in_child(signalled, places[i]);
    return end();
}

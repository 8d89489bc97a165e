// Signals at injected calls: timers, the trap flag, handlers of every signal, forged frames.
// native: 0
#include "escape.h"
#include <ucontext.h>

static volatile long count;
static void handler(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)information, (void)context;
    count++;
    char *page = mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != MAP_FAILED) munmap(page, PAGE);
}

static void handle_all(int flags) {
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    for (int signal = 1; signal < 65; signal++) sigaction(signal, &action, 0);
}

static void maps(void) {
    for (int i = 0; i < 50; i++) {
        char *page = mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(page, PAGE, PROT_READ);
        mremap(page, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
    }
}

static void timers(long flags) {
    handle_all(flags);
    struct itimerval every = {{0, 3}, {0, 3}};
    setitimer(ITIMER_REAL, &every, 0);
    maps();
    for (int signal = 1; signal < 65; signal++) {
        if (signal == SIGKILL || signal == SIGSTOP) continue;
        raise(signal);
    }
    maps();
}

static void trap_flag(long unused) {
    (void)unused;
    handle_all(0);
    // Single-steps itself through calls that are injected: mmap, getpid, munmap.
    __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq\n mov $9, %%eax\n xor %%edi, %%edi\n mov $4096, %%esi\n"
                     "mov $7, %%edx\n mov $0x22, %%r10d\n mov $-1, %%r8\n xor %%r9d, %%r9d\n syscall\n"
                     "mov %%rax, %%rdi\n mov $4096, %%esi\n mov $11, %%eax\n syscall\n"
                     "pushfq\n andq $~0x100, (%%rsp)\n popfq\n"
                     : : : "rax", "rdi", "rsi", "rdx", "r10", "r8", "r9", "rcx", "r11", "memory");
}

static long forged_at[3];
static void forge(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)information;
    ucontext_t *frame = context;
    greg_t *registers = frame->uc_mcontext.gregs;
    if (forged_at[0]) registers[REG_RIP] = forged_at[0];
    if (forged_at[1]) registers[REG_CSGSFS] = forged_at[1];
    if (forged_at[2]) registers[REG_EFL] = forged_at[2];
    registers[REG_RAX] = SYS_execve;
    registers[REG_RDI] = (long)"/bin/sleep";
    registers[REG_RSI] = registers[REG_RDX] = 0;
}

static void forged(long which) {
    static const long frames[][3] = {
        {GATE, 0, 0}, {GATE + 2, 0, 0}, {0, 0x10, 0}, {0, 0x23, 0}, {0, 0, 0x3000}, {0, 0, 0x100}, {0, 0, -1},
        {-1, 0, 0}, {0x800000000000, 0, 0}, {0xffffffffff600000, 0, 0}, {GATE, 0x23, 0x100}, {0, 0xffff, 0},
        {GATE + PAGE, 0, 0}, {1, 0, 0},
    };
    memcpy(forged_at, frames[which], sizeof forged_at);
    struct sigaction action = {.sa_sigaction = forge, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    sigaction(SIGUSR1, &action, 0);
    raise(SIGUSR1);
}

static void bare_return(long stack) {
    __asm__ volatile("mov %0, %%rsp\n mov $15, %%eax\n syscall\n" : : "r"(stack));
}

int main(int argc, char **argv) {
    begin(argc, argv);
    in_child(timers, 0);
    in_child(timers, SA_NODEFER | SA_RESTART);
    in_child(trap_flag, 0);
    for (int which = 0; which < 14; which++) in_child(forged, which);
    static const long places[] = {0, 8, -8, GATE, GATE + PAGE, 0x7ffffffff000, -PAGE, 1ul << 47};
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) in_child(bare_return, places[i]);
    return end();
}

// Makes calls of its own from the instruction of injected calls, and jumps into the bytes around it.
// native: 0
#include "escape.h"

static long through(long n, long a, long b, long c) {
    long result;
    // The gate does not return: behind its instruction it faults.
    __asm__ volatile("jmp *%1" : "=a"(result) : "r"(GATE), "a"(n), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static volatile long seen;
static void after(int signal, siginfo_t *information, void *context) {
    (void)signal, (void)information;
    seen = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX];
    siglongjmp(back, 1);
}

static long by_gate(long n, long a, long b, long c) {
    seen = -1;
    if (TRY == 0) through(n, a, b, c);
    return seen;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    catch_faults();
    struct sigaction action = {.sa_sigaction = after, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigaction(SIGSEGV, &action, 0);
    char *words[] = {"sleep", "7", 0};
    must(by_gate(SYS_getpid, 0, 0, 0) == getpid(), "getpid");
    refused("execve", by_gate(SYS_execve, (long)"/bin/sleep", (long)words, (long)(words + 2)));
    refused("open", by_gate(SYS_open, (long)real_file, O_RDWR, 0));
    refused("kill", by_gate(SYS_kill, real_process, SIGKILL, 0));
    refused("recvmsg", by_gate(SYS_recvmsg, 3, GATE + PAGE, 0));
    refused("seccomp", by_gate(317, 1, 0, 0));
    refused("close_range", by_gate(SYS_close, 3, 0, 0));
    for (unsigned long at = 1; at < PAGE; at += 7) {
        if (TRY == 0) {
            __asm__ volatile("jmp *%0" : : "r"(GATE + at), "a"(SYS_getpid));
            escaped("behind the gate", at);
        }
    }
    // What lies beside the gate can be written: it is written anew before each use.
    for (unsigned i = 0; i < PAGE; i++) ((volatile char *)GATE)[PAGE + i] = 0x41;
    int fd = open("/shared", O_RDWR | O_CREAT, 0600);
    ftruncate(fd, PAGE);
    char *shared = mmap(0, PAGE, 3, MAP_SHARED, fd, 0);
    must(shared != MAP_FAILED, "a shared file");
    shared[0] = 'x';
    char byte = 0;
    pread(fd, &byte, 1, 0);
    must(byte == 'x', "its contents");
    return end();
}

// Tries everything that would touch the real machine. Prints what it got; argv[1]: a real file, argv[2]: a real process,
// argv[3]: a real port.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void show(const char *what, long result) {
    if (result < 0) printf("%s: errno %d\n", what, errno);
    else printf("%s: %ld\n", what, result);
}

static long by_int80(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
    return result;
}

static long by_syscall(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}

static void files(const char *path) {
    show("open", open(path, O_RDWR));
    show("create", creat(path, 0600) >= 0 ? 1 : -1);
    show("unlink", unlink(path));
    show("unlink again", unlink(path));
}

static void others(int process, int port) {
    show("kill", kill(process, SIGKILL));
    show("kill -1", kill(-1, SIGCONT));
    show("ptrace", ptrace(PTRACE_ATTACH, process, 0, 0));
    show("process_vm_readv", syscall(SYS_process_vm_readv, process, 0, 0, 0, 0, 0));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    show("connect", connect(fd, (struct sockaddr *)&to, sizeof to));
    show("io_uring_setup", syscall(425, 8, 0));
    show("bpf", syscall(321, 0, 0, 0));
    show("mount", syscall(SYS_mount, "none", "/mnt", "tmpfs", 0, 0));
    show("reboot", syscall(SYS_reboot, 0, 0, 0, 0));
}

static void other_ways(void) {
    // 20 is getpid, 5 is open and 10 is unlink of 32-bit programs; 1 would be exit.
    printf("int 0x80: %ld %ld %ld\n", by_int80(20, 0, 0, 0), by_int80(1, 7, 0, 0), by_int80(10, 0, 0, 0));
    printf("x32: %ld\n", by_syscall(0x40000000 + 39, 0, 0, 0));
    printf("no such call: %ld\n", by_syscall(100000, 0, 0, 0));
    int64_t (*old_time)(int64_t *) = (void *)0xffffffffff600400;
    int64_t first = old_time(NULL);
    printf("old time: %d\n", first == by_syscall(SYS_time, 0, 0, 0));
}

static void processor(void) {
    printf("PR_SET_TSC: %d\n", prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0));
    printf("ARCH_SET_CPUID: %ld\n", by_syscall(SYS_arch_prctl, 0x1012, 1, 0));
    uint32_t low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    uint64_t first = (uint64_t)high << 32 | low;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    printf("counter: %d\n", ((uint64_t)high << 32 | low) == first);
    uint32_t a = 0x80000002, b, c, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
    printf("cpuid: %x %x %x %x\n", a, b, c, d);
}

static void fill_memory(int flags, const char *what) {
    const size_t piece = 64 << 20;
    long pieces = 0;
    while (pieces < 4096) {
        char *at = mmap(NULL, piece, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) break;
        pieces++;
    }
    printf("%s: %s\n", what, pieces * 64 <= 16384 ? "bounded" : "boundless");
}

static void fork_bomb(void) {
    long made = 0;
    for (int i = 0; i < 5000; i++) {
        pid_t child = fork();
        if (child == 0) { pause(); _exit(0); }
        if (child < 0) break;
        made++;
    }
    printf("fork: %s\n", made < 5000 ? "bounded" : "boundless");
    fflush(stdout);
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    setvbuf(stdout, NULL, _IONBF, 0);
    files(argv[1]);
    others(atoi(argv[2]), atoi(argv[3]));
    other_ways();
    processor();
    show("madvise HWPOISON", madvise((void *)((uintptr_t)argv & -4096), 4096, 100));
    fill_memory(MAP_PRIVATE, "private memory");
    fill_memory(MAP_SHARED, "shared memory");
    if (argc > 4) fork_bomb();
    return 0;
}

// Every system call number with hostile arguments, by `syscall`, as x32 calls and by `int 0x80`.
// native: 0
#include "escape.h"

static char memory[8 * PAGE];

static long by_int80(long n, long a, long b, long c, long d, long e) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(n), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                     : "memory", "r8", "r9", "r10", "r11");
    return result;
}

// Calls that only wait, or that end the process that tries the others.
static int is_left_out(long n) {
    switch (n) {
    case SYS_exit: case SYS_exit_group: case SYS_rt_sigreturn: case SYS_pause: case SYS_rt_sigsuspend: case SYS_vfork:
        return 1;
    }
    return 0;
}

static void attempts(long n) {
    long file = (long)real_file, text = (long)memory;
    long all[][6] = {
        {0, 0, 0, 0, 0, 0},
        {-1, -1, -1, -1, -1, -1},
        {text, text, text, text, text, text},
        {file, file, 0777, file, 0, 0},
        {file, O_RDWR | O_CREAT | O_TRUNC, 0777, 0, 0, 0},
        {AT_FDCWD, file, O_RDWR | O_TRUNC, 0777, 0, 0},
        {3, text, PAGE, 0, 0, 0},
        {real_process, SIGKILL, 0, 0, 0, 0},
        {GATE, PAGE, 7, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0},
        {0x7fffffffffff, 0x7fffffffffff, 0x7fffffffffff, 0x7fffffffffff, 0x7fffffffffff, 0x7fffffffffff},
        {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN},
    };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        long *a = all[i];
        long self = raw(SYS_getpid, 0, 0, 0, 0, 0, 0);
        if (n < 0x40000000) refused("an x32 call", raw(n | 0x40000000, a[0], a[1], a[2], a[3], a[4], a[5]));
        refused("a 32-bit call", by_int80(n, a[0], a[1], a[2], a[3], a[4]));
        if (!is_left_out(n)) raw(n, a[0], a[1], a[2], a[3], a[4], a[5]);
        // A child of a call that makes one ends at once.
        if (raw(SYS_getpid, 0, 0, 0, 0, 0, 0) != self) raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
}

int main(int argc, char **argv) {
    begin(argc, argv);
    // Crashing, hanging or being killed by itself is as good an end as any.
    for (long n = 0; n < 640; n++) in_child(attempts, n);
    static const long others[] = {-1, -2, 0x7fffffff, 0x40000000, 0x4000003b, 1l << 32 | 59, 1l << 63 | 59, 100000};
    for (unsigned i = 0; i < sizeof others / sizeof *others; i++) in_child(attempts, others[i]);
    return end();
}

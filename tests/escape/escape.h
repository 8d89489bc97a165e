// What the guests of this folder share. Their arguments: a real file, a port on which somebody listens, a real process.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

// Where Everett's own pages are: the instruction of injected calls, and what these read and write.
#define GATE 0x7ffffc000000ul
#define PAGE 4096ul

static int escapes;
static char *real_file;
static int real_port, real_process;

// A raw system call: the result is as the kernel gives it.
static inline long raw(long n, long a, long b, long c, long d, long e, long f) {
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "=a"(result) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

// Something happened that must not.
static inline void escaped(const char *what, long value) {
    printf("escaped: %s: %ld\n", what, value);
    fflush(stdout);
    escapes++;
}

// A call that must fail.
static inline void refused(const char *what, long result) {
    if (!(result < 0 && result >= -4095)) escaped(what, result);
}

static inline void must(int holds, const char *what) {
    if (!holds) escaped(what, 0);
}

// Runs an attempt in a child, which may crash, hang or exit: only what it leaves behind counts.
static inline int in_child(void (*attempt)(long), long argument) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        // Virtual time: some thousand calls, or a short while of computing.
        struct itimerval soon = {.it_value = {0, 5000}};
        setitimer(ITIMER_REAL, &soon, 0);
        escapes = 0;
        attempt(argument);
        fflush(stdout);
        _exit(escapes ? 99 : 0);
    }
    int status = 0;
    if (child > 0) waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 99) escapes++;
    return status;
}

static sigjmp_buf back;
static void jump_back(int signal) { siglongjmp(back, signal); }

// Faults jump to where TRY stands, which then is the number of the signal.
static inline void catch_faults(void) {
    struct sigaction action = {.sa_handler = jump_back, .sa_flags = SA_NODEFER | SA_ONSTACK};
    static char stack[65536];
    stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&other, 0);
    int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGSYS};
    for (unsigned i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, 0);
}
#define TRY (sigsetjmp(back, 1))

static inline void begin(int argc, char **argv) {
    real_file = argc > 1 ? argv[1] : "/etc/passwd";
    real_port = argc > 2 ? atoi(argv[2]) : 22;
    real_process = argc > 3 ? atoi(argv[3]) : 1;
}

static inline int end(void) {
    printf(escapes ? "%d escapes\n" : "contained\n", escapes);
    fflush(stdout);
    return escapes ? 1 : 0;
}

// Other processes: signals, ptrace, their memory, pidfds, priorities, limits.
// native: 0
#include "escape.h"
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/uio.h>

static void with(long process) {
    char byte = 0;
    struct iovec here = {&byte, 1}, there = {(void *)GATE, 1};
    for (int request = 0; request < 34; request++) {
        if (request != PTRACE_TRACEME) refused("ptrace", raw(SYS_ptrace, request, process, 0, 0, 0, 0));
    }
    for (int request = 0x4200; request < 0x4212; request++) refused("ptrace", raw(SYS_ptrace, request, process, 0, 0, 0, 0));
    refused("process_vm_readv", raw(310, process, (long)&here, 1, (long)&there, 1, 0));
    refused("process_vm_writev", raw(311, process, (long)&here, 1, (long)&there, 1, 0));
    refused("kcmp", raw(312, process, getpid(), 0, 0, 0, 0));
    refused("pidfd_getfd", raw(438, process, 0, 0, 0, 0, 0));
    refused("process_madvise", raw(440, process, (long)&there, 1, 4, 0, 0));
    refused("process_mrelease", raw(448, process, 0, 0, 0, 0, 0));
    refused("migrate_pages", raw(256, process, 0, 0, 0, 0, 0));
    refused("move_pages", raw(279, process, 0, 0, 0, 0, 0));
}

static void kill_real(long process) {
    refused("kill", raw(SYS_kill, process, SIGKILL, 0, 0, 0, 0));
    refused("tkill", raw(SYS_tkill, process, SIGKILL, 0, 0, 0, 0));
    refused("tgkill", raw(SYS_tgkill, process, process, SIGKILL, 0, 0, 0));
    refused("rt_sigqueueinfo", raw(SYS_rt_sigqueueinfo, process, SIGKILL, 0, 0, 0, 0));
    refused("pidfd_open", raw(434, process, 0, 0, 0, 0, 0));
    refused("killpg", raw(SYS_kill, -process, SIGKILL, 0, 0, 0, 0));
    refused("setpgid", raw(SYS_setpgid, process, process, 0, 0, 0, 0));
    refused("sched_setaffinity", raw(SYS_sched_setaffinity, process, 8, (long)"\1\0\0\0\0\0\0\0", 0, 0, 0));
    struct rlimit none = {0, 0};
    refused("prlimit", raw(302, process, RLIMIT_NOFILE, (long)&none, 0, 0, 0));
}

static void kill_many(long unused) {
    (void)unused;
    for (int process = 1; process < 70000; process++)
        if (process < 1000 || process > 9000) raw(SYS_kill, process, SIGKILL, 0, 0, 0, 0);
    raw(SYS_kill, 0, SIGKILL, 0, 0, 0, 0);
}

static void kill_all(long unused) {
    (void)unused;
    raw(SYS_kill, -1, SIGCONT, 0, 0, 0, 0);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    in_child(with, real_process);
    in_child(with, 1);
    in_child(kill_real, real_process);
    setpgid(0, 0);
    fflush(stdout);
    if (fork() == 0) {
        setpgid(0, 0);
        kill_many(0);
        _exit(0);
    }
    wait(0);
    in_child(kill_all, 0);
    return end();
}

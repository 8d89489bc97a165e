// Children that nobody would trace: every flag of clone alone and beside CLONE_UNTRACED, clone3, and loops in them.
// native: 0
#include "escape.h"

static void child_of(long flags) {
    long child = raw(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0, 0);
    if (child == 0) {
        for (int i = 0; i < 3; i++) raw(SYS_clone, 0x800000 | SIGCHLD, 0, 0, 0, 0, 0);
        raw(SYS_kill, real_process, 9, 0, 0, 0, 0);
        raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
    }
    // In a PID namespace of our own we would be 1.
    if (raw(SYS_getpid, 0, 0, 0, 0, 0, 0) < 1000) escaped("another namespace", flags);
}

static void with_clone3(long flags) {
    uint64_t args[11] = {flags, 0, 0, 0, SIGCHLD};
    if (raw(435, (long)args, sizeof args, 0, 0, 0, 0) == 0) raw(SYS_exit_group, 0, 0, 0, 0, 0, 0);
}

int main(int argc, char **argv) {
    begin(argc, argv);
    for (int bit = 8; bit < 64; bit++) {
        // A thread or a borrowed address space without a stack of its own would only trample on ours.
        if (1ul << bit == CLONE_THREAD || 1ul << bit == CLONE_VFORK || 1ul << bit == CLONE_VM) continue;
        in_child(child_of, 1ul << bit);
        in_child(child_of, 1ul << bit | 0x800000);
        in_child(with_clone3, 1ul << bit);
    }
    in_child(child_of, CLONE_VM | CLONE_VFORK | 0x800000);
    refused("unshare", raw(SYS_unshare, CLONE_NEWUSER | CLONE_NEWPID, 0, 0, 0, 0, 0));
    refused("setns", raw(308, 0, 0, 0, 0, 0, 0));
    return end();
}

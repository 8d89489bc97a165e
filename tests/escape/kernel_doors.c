// Interfaces of the kernel that a program of this kind has no use for: every one is refused.
// native: 0
#include "escape.h"

static char memory[PAGE];

int main(int argc, char **argv) {
    begin(argc, argv);
    static const struct { const char *name; int number; } doors[] = {
        {"io_uring_setup", 425}, {"io_uring_enter", 426}, {"io_uring_register", 427}, {"bpf", 321},
        {"userfaultfd", 323}, {"perf_event_open", 298}, {"add_key", 248}, {"request_key", 249}, {"keyctl", 250},
        {"mount", 165}, {"umount2", 166}, {"pivot_root", 155}, {"swapon", 167}, {"swapoff", 168}, {"reboot", 169},
        {"sethostname", 170}, {"setdomainname", 171}, {"init_module", 175}, {"delete_module", 176}, {"quotactl", 179},
        {"kexec_load", 246}, {"fanotify_init", 300}, {"open_by_handle_at", 304}, {"setns", 308},
        {"finit_module", 313}, {"kexec_file_load", 320}, {"open_tree", 428}, {"move_mount", 429}, {"fsopen", 430},
        {"fsconfig", 431}, {"fsmount", 432}, {"fspick", 433}, {"mount_setattr", 442}, {"landlock_create_ruleset", 444},
        {"memfd_secret", 447}, {"acct", 163}, {"syslog", 103}, {"ioprio_set", 251}, {"unshare", 272},
        {"lookup_dcookie", 212}, {"nfsservctl", 180}, {"io_setup", 206}, {"settimeofday of nothing", 305},
        {"pkey_alloc", 330}, {"map_shadow_stack", 453}, {"lsm_set_self_attr", 460}, {"statmount", 457},
        {"listmount", 458}, {"quotactl_fd", 443}, {"cachestat", 451}, {"adjtimex", 159}, {"clock_adjtime", 305},
        {"_sysctl", 156}, {"create_module", 174}, {"query_module", 178}, {"vserver", 236}, {"uselib", 134},
    };
    for (unsigned i = 0; i < sizeof doors / sizeof *doors; i++) {
        // The last of these is a request that nobody may make; what a call means by the others differs.
        raw(doors[i].number, (long)memory, (long)memory, (long)memory, 0, 0, 0);
        refused(doors[i].name, raw(doors[i].number, -1, -1, -1, -1, -1, -1));
    }
    raw(SYS_chroot, (long)"/", 0, 0, 0, 0, 0);
    raw(SYS_vhangup, 0, 0, 0, 0, 0, 0);
    return end();
}

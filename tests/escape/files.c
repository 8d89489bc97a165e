// Real files: by path, by links, by /proc, by descriptors that nobody opened, by devices.
// native: 0
// exec: 0
#include "escape.h"
#include <sys/ioctl.h>
#include <sys/socket.h>

static void absent(const char *path) {
    refused(path, raw(SYS_open, (long)path, O_RDWR, 0, 0, 0, 0));
    refused(path, raw(SYS_openat, AT_FDCWD, (long)path, O_RDONLY, 0, 0, 0));
    refused(path, raw(SYS_unlink, (long)path, 0, 0, 0, 0, 0));
    refused(path, raw(SYS_rename, (long)path, (long)"/stolen", 0, 0, 0, 0));
    refused(path, raw(SYS_truncate, (long)path, 0, 0, 0, 0, 0));
    refused(path, raw(SYS_chmod, (long)path, 0777, 0, 0, 0, 0));
    refused(path, raw(SYS_link, (long)path, (long)"/linked", 0, 0, 0, 0));
}

int main(int argc, char **argv) {
    begin(argc, argv);
    char path[4096];
    absent(real_file);
    snprintf(path, sizeof path, "/../../../..%s", real_file);
    absent(path);
    snprintf(path, sizeof path, "/proc/self/root%s", real_file);
    absent(path);
    snprintf(path, sizeof path, "/proc/1/root%s", real_file);
    absent(path);
    snprintf(path, sizeof path, "/proc/%d/mem", real_process);
    absent(path);
    symlink(real_file, "/link");
    refused("a link", raw(SYS_open, (long)"/link", O_RDWR, 0, 0, 0, 0));
    static const char *devices[] = {"/dev/mem", "/dev/kmem", "/dev/port", "/dev/sda", "/dev/vda", "/dev/kvm",
                                    "/dev/fuse", "/proc/kcore", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper",
                                    "/sys/fs/cgroup/cgroup.procs"};
    for (unsigned i = 0; i < sizeof devices / sizeof *devices; i++) absent(devices[i]);
    // A device that the model makes has nothing behind it.
    mknod("/disk", 0060600, 8 << 8);
    refused("a disk", raw(SYS_open, (long)"/disk", O_RDWR, 0, 0, 0, 0));
    mknod("/memory", 0020600, 1 << 8 | 1);
    refused("the memory", raw(SYS_open, (long)"/memory", O_RDWR, 0, 0, 0, 0));
    // Descriptors that the real process has are none of the program's.
    char byte = 'x';
    char control[64];
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    for (int fd = 3; fd < 1100; fd++) {
        refused("write", raw(SYS_write, fd, (long)&byte, 1, 0, 0, 0));
        refused("sendmsg", raw(SYS_sendmsg, fd, (long)&message, 0, 0, 0, 0));
        refused("recvmsg", raw(SYS_recvmsg, fd, (long)&message, MSG_DONTWAIT, 0, 0, 0));
        refused("fcntl", raw(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0));
        refused("dup", raw(SYS_dup, fd, 0, 0, 0, 0, 0));
        refused("close", raw(SYS_close, fd, 0, 0, 0, 0, 0));
    }
    ioctl(0, TIOCSTI, "x");
    return end();
}

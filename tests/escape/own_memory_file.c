// /proc/self/mem, process_vm_writev on itself, and calls that write where the program may not.
// native: 0
#include "escape.h"
#include <sys/uio.h>

static const char constant[] = "constant";

int main(int argc, char **argv) {
    begin(argc, argv);
    unsigned long places[] = {GATE, (unsigned long)constant, (unsigned long)main};
    int fd = open("/proc/self/mem", O_RDWR);
    for (unsigned i = 0; i < 3; i++) {
        unsigned long at = places[i];
        unsigned char before = *(volatile unsigned char *)at;
        char bytes[2] = {(char)0xcc, (char)0xcc};
        struct iovec here = {bytes, 2}, there = {(void *)at, 2};
        if (fd >= 0) pwrite(fd, bytes, 2, at);
        raw(311, getpid(), (long)&here, 1, (long)&there, 1, 0);
        int pipes[2];
        pipe(pipes);
        write(pipes[1], bytes, 2);
        refused("read", raw(SYS_read, pipes[0], at, 2, 0, 0, 0));
        refused("readv", raw(SYS_readv, pipes[0], (long)&there, 1, 0, 0, 0));
        refused("getcwd", raw(SYS_getcwd, at, 100, 0, 0, 0, 0));
        refused("clock_gettime", raw(SYS_clock_gettime, 0, at, 0, 0, 0, 0));
        must(*(volatile unsigned char *)at == before, "memory that is only read");
    }
    mmap(0, PAGE, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return end();
}

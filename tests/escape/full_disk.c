// Fills the disk: one file, many files, sparse ones, by write, pwrite, sendfile.
// options: --max-files 32M
// native: 0
// exec: 0
#include "escape.h"
#include <sys/sendfile.h>

static char block[1 << 20];

int main(int argc, char **argv) {
    begin(argc, argv);
    memset(block, 'x', sizeof block);
    int fd = open("/large", O_RDWR | O_CREAT, 0600);
    int blocks = 0;
    while (blocks < 4000 && write(fd, block, sizeof block) == sizeof block) blocks++;
    must(blocks >= 28 && blocks <= 33 && errno == ENOSPC, "a file without end");
    for (long at = 0; at < 4096; at++) pwrite(fd, block, 1, at << 20);
    int files = 0;
    for (; files < 4000; files++) {
        char name[32];
        sprintf(name, "/small%d", files);
        int small = open(name, O_RDWR | O_CREAT, 0600);
        if (small < 0 || write(small, block, 65536) != 65536) break;
        close(small);
    }
    must(files < 100, "files without end");
    lseek(fd, 0, SEEK_SET);
    int other = open("/other", O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 200; i++) sendfile(other, fd, 0, 1 << 20);
    must(lseek(other, 0, SEEK_END) < 4 << 20, "sendfile without end");
    unlink("/large");
    close(fd);
    must(write(other, block, 4096) >= 0 || errno == ENOSPC, "room again");
    return end();
}

// Files that grow through shared mappings, which no call writes to.
// options: --max-files 16M
// exec: 2
// run: 2
// native: 2
// says: --max-files
#include "escape.h"

int main(void) {
    const long size = 64 << 20;
    int fd = open("file", O_CREAT | O_RDWR, 0600);
    ftruncate(fd, size);
    char *memory = mmap(0, size, 3, MAP_SHARED, fd, 0);
    for (long at = 0; at < size; at += PAGE) memory[at] = 1;
    struct stat file;
    fstat(fd, &file);
    puts("escaped: files hold more than they may");
    return 0;
}

// Memory that is initialised where it is used: by a symbolic length, in part of a word, in an argument that nobody reads.
// run: --check-uninitialised
// exec:
// paths: 16
#include <everett.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct bits {
    unsigned low : 3;
    unsigned never : 5;
    unsigned high : 9;
};

int main(void) {
    if (fcntl(0, F_GETFL) < 0 || fcntl(0, F_GETFD) < 0 || syscall(SYS_getpid) <= 0 || prctl(PR_GET_DUMPABLE) < 0)
        return 1;
    char text[16];
    unsigned n = everett_range(0, 16, "n");
    memset(text, 'x', n);
    text[n & 15] = 0;
    if (strlen(text) != n)
        return 2;
    struct bits bits;
    bits.low = n & 7;
    bits.high = 300;
    if (bits.low != (n & 7) || bits.high != 300)
        return 3;
    return 0;
}

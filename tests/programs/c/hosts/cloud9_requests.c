// What is read is symbolic, and arrives in pieces, until it is taken back.
// run:
// paths: 4
#include <cloud9.h>
#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    char bytes[4] = {0};
    if (pipe(ends) < 0 || write(ends[1], "ab", 2) != 2)
        return 1;
    if (ioctl(ends[0], SIO_SYMBOLIC, RD) < 0 || read(ends[0], bytes, 2) != 2)
        return 2;
    if (bytes[1] == '!')
        puts("a bang");
    if (ioctl(ends[0], SIO_SYMBOLIC, 0) < 0 || ioctl(ends[0], SIO_PKT_FRAGMENT, RD) < 0)
        return 3;
    if (ioctl(ends[1], SIO_PKT_FRAGMENT, WR) == 0 || errno != EINVAL || write(ends[1], "cd", 2) != 2)
        return 4;
    ssize_t got = read(ends[0], bytes, 2);
    if (bytes[0] != 'c' || everett_is_symbolic(bytes[0]))
        return 5;
    if (got == 1)
        puts("in pieces");
    return 0;
}

// Regions and descriptors in which calls fail need no options: one call fails on a path. A write to a
// pipe that has room is not interrupted, but may move fewer bytes.
// run:
// paths: 3
#include <cloud9.h>
#include <sys/ioctl.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    char buffer[8];
    if (pipe(ends) < 0)
        return 1;
    cloud9_fi_enable();
    ssize_t first = write(ends[1], "hello", 5);
    cloud9_fi_disable();
    if (first < 0)
        return 2;
    // The wrong directions: none of these calls fails.
    if (ioctl(ends[1], SIO_FAULT_INJ, RD) < 0 || ioctl(ends[0], SIO_FAULT_INJ, WR) < 0)
        return 3;
    if (write(ends[1], "x", 1) != 1 || read(ends[0], buffer, sizeof buffer) != first + 1)
        return 4;
    if (ioctl(ends[1], SIO_FAULT_INJ, RD | WR) < 0)
        return 5;
    return write(ends[1], "hello", 5) == 5 ? 0 : 6;
}

// Sleeps longer than there is time, and goes on.
// native: 0
// exec: 0
#include "escape.h"
#include <time.h>

int main(int argc, char **argv) {
    begin(argc, argv);
    struct timespec longest = {0x7fffffffffffffff, 999999999}, now;
    for (int i = 0; i < 3; i++) syscall(SYS_nanosleep, &longest, 0);
    for (int clock = 0; clock < 12; clock++) syscall(SYS_clock_gettime, clock, &now);
    struct itimerspec timer = {longest, longest};
    int descriptor = syscall(SYS_timerfd_create, 1, 0);
    syscall(SYS_timerfd_settime, descriptor, 0, &timer, 0);
    syscall(SYS_timerfd_settime, descriptor, 1, &timer, 0);
    for (volatile int i = 0; i < 3000000; i++) {}
    syscall(SYS_alarm, -1);
    return end();
}

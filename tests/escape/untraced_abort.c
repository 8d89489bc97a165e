// A child that nobody would trace spins while its parent aborts: the finding is confirmed natively, and nothing is left.
// native: 134
// run: 1
#include "escape.h"

int main(void) {
    if (raw(SYS_clone, 0x800000 | SIGCHLD, 0, 0, 0, 0, 0) == 0) {
        raw(SYS_clone, 0x800000 | SIGCHLD, 0, 0, 0, 0, 0);
        for (volatile unsigned long i = 0; i < 2000000; i++) {}
        raw(SYS_exit, 0, 0, 0, 0, 0, 0);
    }
    abort();
}

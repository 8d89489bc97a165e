// Executes an instruction for ever that is emulated: no system call is made, and no stretch of computation is long.
// options: --max-time 1s
// native: 2
// says: --max-time
#include "escape.h"

int main(void) {
    for (;;) __asm__ volatile("rdtsc" : : : "eax", "edx");
}

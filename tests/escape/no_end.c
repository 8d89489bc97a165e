// Makes calls for ever.
// options: --max-time 1s
// native: 2
// exec: 2
// says: --max-time
#include "escape.h"

int main(void) {
    printf("before\n");
    fflush(stdout);
    for (;;) {
        for (volatile int i = 0; i < 100000; i++) {}
        getppid();
    }
}

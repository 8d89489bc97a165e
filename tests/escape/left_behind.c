// Leaves children, daemons and threads behind, all of them busy: nothing outlives the run.
// native: 0
#include "escape.h"
#include <pthread.h>

static void *spins(void *unused) {
    for (volatile long i = 0;; i++) {}
    return unused;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    for (int i = 0; i < 5; i++) {
        if (fork() == 0) {
            setsid();
            if (fork() == 0) {
                close(0), close(1), close(2);
                signal(SIGTERM, SIG_IGN);
                pthread_t thread;
                pthread_create(&thread, 0, spins, 0);
                spins(0);
            }
            _exit(0);
        }
    }
    for (int i = 0; i < 5; i++) wait(0);
    return end();
}

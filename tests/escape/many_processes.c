// Makes processes and threads until it gets no more.
// options: --max-processes 64
// native: 0
// exec: 0
#include "escape.h"
#include <pthread.h>

static void *waits(void *unused) {
    pause();
    return unused;
}

int main(int argc, char **argv) {
    begin(argc, argv);
    int made = 0;
    while (made < 5000) {
        pid_t child = fork();
        if (child == 0) pause();
        if (child < 0) break;
        made++;
    }
    must(made < 64 && errno == EAGAIN, "processes without end");
    kill(0, 0);
    pthread_t thread;
    must(pthread_create(&thread, 0, waits, 0) == EAGAIN, "threads without end");
    return end();
}

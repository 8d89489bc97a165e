// exec:
// A detached thread frees its own stack at its end; the others go on.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *end(void *nothing) { return nothing; }

int main(void) {
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, end, 0) || pthread_detach(thread))
            return 1;
        usleep(1000);
        printf("alive after %d\n", i + 1);
    }
    return 0;
}

// run: --faults 1
// paths: 6
// finding: assertion 18
// What a thread needs can fail one by one: memory for its stack, the thread itself.
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

static void *work(void *value) {
    *(int *)value = 7;
    return NULL;
}

int main(void) {
    int *value = malloc(sizeof *value);
    if (!value) return 1;
    pthread_t thread;
    assert(pthread_create(&thread, NULL, work, value) == 0);
    pthread_join(thread, NULL);
    int result = *value;
    free(value);
    return result;
}

// Memory that is bounded is exhausted at the same allocation, whatever the allocator needs for itself.
// run: --faults 1 --fault malloc
// paths: 14
#include <everett.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    char *before = malloc(1000);
    everett_set_max_heap(4000);
    int blocks = 0;
    while (malloc(500)) {
        blocks++;
        if (blocks == 3)
            free(before);
    }
    void *aligned = NULL;
    int error = posix_memalign(&aligned, 64, 600);
    char *zeros = calloc(1, 100);
    char *larger = realloc(zeros, 500);
    printf("%d %d %d %d\n", blocks, error, zeros != NULL, larger != NULL);
    return 0;
}

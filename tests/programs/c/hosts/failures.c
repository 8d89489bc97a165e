// Every call can fail once: a pipe in 2 ways, malloc in 1, write and read in 1 each, and the output in 4, or nothing does.
// run: --faults 1
// paths: 10
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    if (pipe(ends) < 0)
        return 1;
    char *buffer = malloc(16);
    if (!buffer)
        return 2;
    ssize_t written = write(ends[1], "hello", 5);
    if (written < 0)
        return 3;
    ssize_t got = read(ends[0], buffer, 15);
    if (got < 0)
        return 4;
    buffer[got] = 0;
    printf("%zd %zd %s\n", written, got, buffer);
    return 0;
}

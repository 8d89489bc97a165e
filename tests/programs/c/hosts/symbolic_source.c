// What is read from a descriptor is symbolic, whatever was written.
// run:
// paths: 2
#include <everett.h>
#include <stdio.h>
#include <unistd.h>

int main(void) {
    int ends[2];
    char byte;
    if (pipe(ends) < 0 || write(ends[1], "x", 1) != 1)
        return 1;
    everett_symbolic_source(ends[0], 1);
    if (read(ends[0], &byte, 1) != 1)
        return 2;
    if (byte == '!')
        puts("a bang");
    return 0;
}

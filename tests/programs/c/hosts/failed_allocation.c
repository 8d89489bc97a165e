// A failure that nobody handles is a finding.
// run: --faults 1 --fault malloc
// finding: null-pointer 8
#include <stdlib.h>

int main(void) {
    int *number = malloc(sizeof *number);
    *number = 1;
    free(number);
    return 0;
}

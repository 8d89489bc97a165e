// A failure that nobody handles is a finding.
// run: --faults 1 --fault malloc
// finding: null-pointer 9
// not on -O3: null-pointer the optimiser leaves the allocation out
#include <stdlib.h>

int main(void) {
    int *number = malloc(sizeof *number);
    *number = 1;
    free(number);
    return 0;
}

// va_arg behind the last argument, in the program and inside printf.
// build: -w
// build: -w -O2
// run:
// paths: 4
// finding: missing-argument 19
// finding: missing-argument 30
// finding: missing-argument 33
// survives: missing-argument native code reads a register that nobody set
#include <everett.h>
#include <stdarg.h>
#include <stdio.h>

static double sum(int count, ...) {
    va_list list;
    va_start(list, count);
    double all = 0;
    for (int i = 0; i < count; i++)
        all += i % 2 ? va_arg(list, double) : va_arg(list, int);
    va_end(list);
    return all;
}

int main(void) {
    switch (everett_choose(4, "way")) {
    case 0:
        return sum(5, 1, 2.0, 3, 4.0) == 0;
    case 1:
        // Floats and integers have registers of their own.
        printf("%d %d\n", 1);
        break;
    case 2:
        printf("%g\n");
        break;
    default:
        printf("%d %g %s %Lg\n", 1, 2.0, "three", 4.0L);
        return sum(9, 1, 2.0, 3, 4.0, 5, 6.0, 7, 8.0, 9) != 45;
    }
    return 0;
}

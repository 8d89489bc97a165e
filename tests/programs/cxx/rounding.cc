// Other rounding than to nearest, and subnormals as zero, end a path where they would matter, not before.
// build: -Wno-unknown-pragmas
// run:
// paths: 1
// complete: no
// finding: unsupported 18
// finding: unsupported 40
// finding: unsupported 43
#include <everett.h>
#include <xmmintrin.h>

static double divide(double a, double b) {
    return a / b;
}

#pragma STDC FENV_ROUND FE_UPWARD
static double upward_divide(double a, double b) {
    return a / b;
}
// A double holds every int, so there is nothing to round.
static double upward_exact(int a) {
    return a;
}
static bool upward_less(double a, double b) {
    return a < b;
}
#pragma STDC FENV_ROUND FE_DYNAMIC

// Its names are macros, which the pragma above would not know.
#include <fenv.h>

int main() {
    unsigned char way;
    everett_make_symbolic(&way, sizeof way, "way");
    volatile double three = 3;
    switch (way) {
        case 0:
            return upward_divide(1, three) == divide(1, three);
        case 1:
            _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
            return 1;
        case 2:
            return fesetround(FE_TOWARDZERO);
        default:
            _mm_setcsr(_mm_getcsr());
            return fesetround(FE_TONEAREST) != 0 || upward_exact(3) != three || upward_less(three, 1);
    }
}

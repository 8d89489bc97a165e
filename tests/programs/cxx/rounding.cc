// What is not computed as the processor does ends a path where it would matter, not before: rounding by a pragma,
// subnormals as zero, and with symbolic values other rounding than to nearest, and exception flags.
// build: -Wno-unknown-pragmas
// run:
// paths: 2
// complete: no
// finding: unsupported 20
// finding: unsupported 43
// finding: unsupported 48
// finding: unsupported 51
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
    unsigned char way, amount;
    everett_make_symbolic(&way, sizeof way, "way");
    everett_make_symbolic(&amount, sizeof amount, "amount");
    volatile double three = 3;
    switch (way) {
        case 0:
            return upward_divide(1, three) == divide(1, three);
        case 1:
            _MM_SET_FLUSH_ZERO_MODE(_MM_FLUSH_ZERO_ON);
            return 1;
        case 2:
            if (fesetround(FE_TOWARDZERO) != 0 || fegetround() != FE_TOWARDZERO)
                return 1;
            return amount / three > 80;
        case 3:
            three = amount / three;
            return fetestexcept(FE_INEXACT) != 0;
        case 4:
            three = amount / three;
            feclearexcept(FE_ALL_EXCEPT);
            three = 1 / 3.5;
            return fetestexcept(FE_INEXACT) != 0;
        default:
            _mm_setcsr(_mm_getcsr());
            return fesetround(FE_TONEAREST) != 0 || upward_exact(3) != three || upward_less(three, 1);
    }
}

// Multiplication and addition with one rounding, as the library has it. The compiler's runtime, which bitcode is linked
// with first, has versions of its own: that of floats rounds twice, and none looks at rounding modes and flags.

#include "libm.h"

#define LIBRARY weak

LIBRARY double fma(double, double, double);
LIBRARY float fmaf(float, float, float);
LIBRARY long double fmal(long double, long double, long double);

#include "fma.c"
#include "fmaf.c"
#include "fmal.c"

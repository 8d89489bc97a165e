// Functions on long double that the library has as assembly with x87 instructions, which bitcode cannot hold: its own
// versions in C, for native programs too, so that both compute the same.

#include "libm.h"

#define LIBRARY weak

LIBRARY long double acosl(long double);
LIBRARY long double asinl(long double);
LIBRARY long double atan2l(long double, long double);
LIBRARY long double expm1l(long double);
LIBRARY long double log1pl(long double);

#include "__invtrigl.c"
#include "acosl.c"
#include "asinl.c"
#include "atan2l.c"
#include "expm1l.c"

// Both files have constants of these names.
#define C1 log1p_c1
#define C2 log1p_c2
#include "log1pl.c"

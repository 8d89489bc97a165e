// build: -O3 -ffast-math
// exec:
#include "matrix.h"

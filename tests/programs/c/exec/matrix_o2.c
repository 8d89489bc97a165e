// build: -O2
// exec:
#include "matrix.h"

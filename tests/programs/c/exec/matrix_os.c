// build: -Os
// exec:
#include "matrix.h"

// build: -O1
// exec:
#include "matrix.h"

// exec:
#include "matrix.h"

/* The replica with the check that it lacks. */
#define FIXED
#include "replica.c"

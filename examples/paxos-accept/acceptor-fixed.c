/* The acceptor that takes only what it has promised to take. */
#define FIXED
#include "acceptor.c"

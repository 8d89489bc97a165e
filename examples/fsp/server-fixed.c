/* The server that compares the lengths and takes no `*` where clients send none. */
#define FIXED
#include "server.c"

/* The server with the check that it lacks. */
#define FIXED
#include "server.c"

/* The same, corrected: term and vote are on the disk before an answer goes out. */
#define SYNCS 1
#include "raft.c"

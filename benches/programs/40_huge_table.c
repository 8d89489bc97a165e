/* Reads of a table of 65,536 entries. */
#include <klee/klee.h>
static unsigned short table[65536];
int main(void){ unsigned short i; klee_make_symbolic(&i,sizeof i,"i");
 for(unsigned k=0;k<65536;k++) table[k]=(unsigned short)(k*40503u>>3);
 if(table[i]==777) return 1;
 if(table[i]>65000) return 2;
 return 0; }

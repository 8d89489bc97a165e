/* Writes to and reads of a table of 65,536 bytes. */
#include <klee/klee.h>
static unsigned char t[65536];
int main(void){ unsigned short k[2]; klee_make_symbolic(k,sizeof k,"k");
 t[k[0]]=1; t[k[1]]=2;
 if(t[k[0]]==2) return 1;
 if(t[77]==1) return 2;
 return 0; }

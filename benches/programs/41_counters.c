/* Counters in a table of 1,024 at four symbolic indices, read again. */
#include <klee/klee.h>
int main(void){ unsigned short k[4]; static int t[1024]; klee_make_symbolic(k,sizeof k,"k");
 for(int i=0;i<4;i++) t[k[i]&1023]+=i+1;
 int n=0;
 for(int i=0;i<4;i++) if(t[k[i]&1023]==i+1) n++;
 klee_assert(n<=4);
 return n; }

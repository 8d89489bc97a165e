/* Sum and difference of two entries of a table of 4,096 pseudo-random numbers. */
#include <klee/klee.h>
static unsigned table[4096];
int main(void){ unsigned short i,j; klee_make_symbolic(&i,sizeof i,"i"); klee_make_symbolic(&j,sizeof j,"j");
 unsigned x=12345; for(int k=0;k<4096;k++){ x=x*1103515245u+12345u; table[k]=x>>8; }
 i&=4095; j&=4095;
 unsigned a=table[i], b=table[j];
 if(a+b==0x123456) return 1;
 if(a>b && a-b<10) return 2;
 return 0; }

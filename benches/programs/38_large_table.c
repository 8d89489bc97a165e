/* Reads of a table of 4,096 entries at an index of two symbolic bytes. */
#include <klee/klee.h>
static unsigned short table[4096];
int main(void){
  unsigned short i; klee_make_symbolic(&i,sizeof i,"i");
  for(unsigned k=0;k<4096;k++) table[k]=(unsigned short)(k*k/7);
  klee_assume(i<4096);
  if(table[i]==777) return 1;
  if(table[i]>60000) return 2;
  if(table[i]==table[(i+1)&4095]) return 3;
  return 0;
}

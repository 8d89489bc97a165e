/* Writes at symbolic indices, then reads at others: counting sort of 4 symbolic bytes below 64. */
#include <klee/klee.h>
int main(void){
  unsigned char k[4]; klee_make_symbolic(k,sizeof k,"k");
  unsigned count[64]={0};
  for(int i=0;i<4;i++){ klee_assume(k[i]<64); count[k[i]]++; }
  int twice=0;
  for(int i=0;i<4;i++) if(count[k[i]]>1) twice++;
  klee_assert(twice!=1);
  return twice;
}

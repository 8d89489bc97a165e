/* The library's qsort of 4 symbolic bytes. */
#include <klee/klee.h>
#include <stdlib.h>
static int order(const void*a,const void*b){ return *(const unsigned char*)a-*(const unsigned char*)b; }
int main(void){
  unsigned char k[4]; klee_make_symbolic(k,sizeof k,"k");
  qsort(k,4,1,order);
  for(int i=1;i<4;i++) klee_assert(k[i-1]<=k[i]);
  return 0;
}

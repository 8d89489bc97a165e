/* Open addressing: three symbolic keys into 16 slots. */
#include <klee/klee.h>
int main(void){
  unsigned short key[3], slot[16]={0}; klee_make_symbolic(key,sizeof key,"key");
  int probes=0;
  for(int i=0;i<3;i++){
    klee_assume(key[i]!=0);
    unsigned at=(key[i]*40503u>>7)&15;
    while(slot[at]&&slot[at]!=key[i]){ at=(at+1)&15; probes++; if(probes>4) return 9; }
    slot[at]=key[i];
  }
  return probes;
}

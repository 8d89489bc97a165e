/* UTF-8 decoder over 5 symbolic bytes. */
#include <klee/klee.h>
int main(void){
  unsigned char s[6]; klee_make_symbolic(s,sizeof s,"s"); s[5]=0;
  int n=0; unsigned long sum=0;
  for(int i=0;s[i];n++){
    unsigned c=s[i],w; int more;
    if(c<0x80){ w=c; more=0; }
    else if(c<0xc2) return -1;
    else if(c<0xe0){ w=c&31; more=1; }
    else if(c<0xf0){ w=c&15; more=2; }
    else if(c<0xf5){ w=c&7; more=3; }
    else return -1;
    for(i++;more>0;more--,i++){ if((s[i]&0xc0)!=0x80) return -2; w=w<<6|(s[i]&63); }
    if((w>=0xd800&&w<0xe000)||w>0x10ffff) return -3;
    sum+=w;
  }
  return sum==0x20ac+'a'?100:n;
}

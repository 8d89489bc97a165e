/* Division and remainder of symbolic numbers by constants and by one another. */
#include <klee/klee.h>
int main(void){
  unsigned a; unsigned short b; klee_make_symbolic(&a,sizeof a,"a"); klee_make_symbolic(&b,sizeof b,"b");
  int n=0;
  if(a%1000==337) n|=1;
  if(a/86400==11574) n|=2;
  if(a/3600%24==13) n|=4;
  klee_assume(b!=0);
  if(a%b==5) n|=8;
  return n;
}

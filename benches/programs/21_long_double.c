/* A switch on a long double that was a byte. */
#include <klee/klee.h>
int main(void){
  unsigned char c; klee_make_symbolic(&c,sizeof c,"c");
  long double d=c/4.0L; int n=0;
  switch((int)(d*2)){ case 1: n=1; break; case 7: n=2; break; case 100: n=3; break; case 200: n=4; break; }
  if(d==16.25L) n+=10;
  if(d>63.8L) n+=20;
  return n;
}

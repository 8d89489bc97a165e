/* A square modulo a prime over two symbolic bytes: a product, then a remainder. */
#include <klee/klee.h>
int main(void){
  unsigned short c; klee_make_symbolic(&c,sizeof c,"c");
  unsigned r=((unsigned)c*c)%1009;
  if(r==17) return 1; /* neither 17 nor 11 is a square: infeasible */
  if(r==11) return 2;
  if(r==1008) return 3;
  return 0;
}

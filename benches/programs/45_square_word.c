/* A square modulo primes of a number below 100,000. */
#include <klee/klee.h>
int main(void){ unsigned c; klee_make_symbolic(&c,sizeof c,"c"); if(c>=100000) return 9;
  unsigned long long s=(unsigned long long)c*c; if(s%1009==17) return 1; if(s%1000003==5) return 2;
  if(s==1234567890ull) return 3; return 0; }

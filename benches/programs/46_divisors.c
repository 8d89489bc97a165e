/* Quotient and remainder of two symbolic words. */
#include <klee/klee.h>
int main(void){ unsigned a,b; klee_make_symbolic(&a,sizeof a,"a"); klee_make_symbolic(&b,sizeof b,"b");
  if(!b) return -1;
 if(a/b==1234&&a%b==567) return 1; if(a%b==b-1&&a/b>3) return 2; if(a/b*b+a%b!=a) return 3; return 0; }

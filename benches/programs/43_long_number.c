/* strtol of 7 symbolic characters in base 10. */
#include <klee/klee.h>
#include <stdlib.h>
int main(void){ char s[8],*e; klee_make_symbolic(s,sizeof s,"s"); s[7]=0; long v=strtol(s,&e,10);
  if(v==123456) return 1; if(v<0) return 2; return 0; }

/* strtol of 4 symbolic characters in any base. */
#include <klee/klee.h>
#include <stdlib.h>
int main(void){
  char s[5],*end; klee_make_symbolic(s,sizeof s,"s"); s[4]=0;
  long v=strtol(s,&end,0);
  return end!=s&&!*end?(v==0x1f?3:2):1;
}

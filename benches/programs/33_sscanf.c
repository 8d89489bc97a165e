/* sscanf of 3 symbolic characters. */
#include <klee/klee.h>
#include <stdio.h>
int main(void){
  char s[4]; int a=0; klee_make_symbolic(s,sizeof s,"s"); s[3]=0;
  int n=sscanf(s,"%d",&a);
  return n==1&&a==42?7:n;
}

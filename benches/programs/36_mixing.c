/* A 64-bit finaliser (splitmix64) of a symbolic word, then buckets and a comparison. */
#include <klee/klee.h>
int main(void){
  unsigned long long x; klee_make_symbolic(&x,sizeof x,"x");
  x^=x>>30; x*=0xbf58476d1ce4e5b9ull; x^=x>>27; x*=0x94d049bb133111ebull; x^=x>>31;
  if(x%10==7) return 1;
  if((x>>60)==3) return 2;
  return 0;
}

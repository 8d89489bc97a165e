/* Floats: mean and variance of three symbolic bytes, compared with constants. */
#include <klee/klee.h>
int main(void){
  unsigned char s[3]; klee_make_symbolic(s,sizeof s,"s");
  klee_assume((s[0]<32)&(s[1]<32)&(s[2]<32));
  double m=(s[0]+s[1]+s[2])/3.0, v=0;
  for(int i=0;i<3;i++) v+=(s[i]-m)*(s[i]-m);
  if(m>30.5) return 1;
  if(v==0) return 2;
  if(v/3>200.0) return 3;
  if((float)m==10.0f) return 4;
  return 0;
}

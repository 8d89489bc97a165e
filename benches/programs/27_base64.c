/* base64 of 6 symbolic bytes by a table, decoded again by another. */
#include <klee/klee.h>
static const char code[]="ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static unsigned char back[256];
int main(void){
  unsigned char s[6],d[6]; char t[8]; klee_make_symbolic(s,sizeof s,"s");
  for(int i=0;i<64;i++) back[(unsigned char)code[i]]=(unsigned char)i;
  for(int i=0;i<2;i++){
    unsigned w=s[3*i]<<16|s[3*i+1]<<8|s[3*i+2];
    for(int j=0;j<4;j++) t[4*i+j]=code[w>>(18-6*j)&63];
  }
  for(int i=0;i<2;i++){
    unsigned w=0; for(int j=0;j<4;j++) w=w<<6|back[(unsigned char)t[4*i+j]];
    for(int j=0;j<3;j++) d[3*i+j]=(unsigned char)(w>>(16-8*j));
  }
  for(int i=0;i<6;i++) klee_assert(d[i]==s[i]);
  int plus=0; for(int i=0;i<8;i++) if(t[i]=='+') plus++;
  return plus;
}
